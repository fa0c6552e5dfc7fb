/** `process/signal`: a signal by name to the group of a process. */
import { type SignalParams, type SignalResult, WireError } from '@exec-server/protocol';
import { Parked } from '../connection/parking.js';
import type { HandlerContext } from '../handlerContext.js';

export function signalProcess(context: HandlerContext, params: SignalParams): SignalResult | Parked<SignalResult> {
  const { signals } = context.server.platform;
  const name = params.signal === 'interrupt' ? 'SIGINT' : params.signal;
  if (signals.length === 0) {
    throw new WireError('signalUnsupported', 'this host has no signals; process/terminate still works', {
      field: 'signal',
    });
  }
  if (!signals.includes(name)) {
    const message = `unknown variant \`${params.signal}\`, expected \`interrupt\` or the name of a signal such as \`SIGTERM\``;
    throw new WireError('invalidParams', message, { field: 'signal' });
  }
  const { processes } = context.session;
  const signal = (): SignalResult => ({ delivered: processes.find(params.processId)?.signal(name) === 'delivered' });
  const process = processes.find(params.processId);
  return process?.state === 'starting' ? new Parked(process.started.then(signal)) : signal();
}
