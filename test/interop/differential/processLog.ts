/** What one connection is told about its processes, and who waits for it. */
import type { Members } from '../../support/rawPeer.js';

interface Log {
  readonly chunks: Map<number, { readonly stream: string; readonly bytes: Buffer }>;
  exit: { readonly exitCode: unknown; readonly sandboxDenied: unknown } | undefined;
  closedSeq: number | undefined;
}

export class ProcessLogs {
  readonly #logs = new Map<string, Log>();
  #wake: () => void = () => {};

  notified(method: string, params: Members): void {
    if (!method.startsWith('process/')) return;
    const log = this.#log(String(params['processId']));
    const seq = Number(params['seq']);
    if (method === 'process/output') {
      log.chunks.set(seq, {
        stream: String(params['stream']),
        bytes: Buffer.from(String(params['chunk']), 'base64'),
      });
    } else if (method === 'process/exited') {
      log.exit = { exitCode: params['exitCode'], sandboxDenied: params['sandboxDenied'] };
    } else if (method === 'process/closed') {
      log.closedSeq = seq;
    }
    this.#wake();
  }

  /** Its output by streams and its exit, once every event has come. */
  async closed(processId: string): Promise<Members> {
    const log = this.#log(processId);
    // Events may come out of order: every number below that of the close is a chunk, but for the exit's.
    await this.#until(() => log.exit !== undefined && log.chunks.size + 2 === log.closedSeq);
    return { ...log.exit, ...outputOf(log) };
  }

  /** Its output by streams, once it has so many bytes. */
  async output(processId: string, bytes: number): Promise<Members> {
    const log = this.#log(processId);
    const count = (): number => [...log.chunks.values()].reduce((sum, chunk) => sum + chunk.bytes.length, 0);
    await this.#until(() => count() >= bytes);
    return outputOf(log);
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #log(processId: string): Log {
    const log = this.#logs.get(processId) ?? { chunks: new Map(), exit: undefined, closedSeq: undefined };
    this.#logs.set(processId, log);
    return log;
  }
}

function outputOf({ chunks }: Log): Record<string, string> {
  const output: Record<string, string> = {};
  for (const [, { stream, bytes }] of [...chunks].sort(([a], [b]) => a - b)) {
    output[stream] = (output[stream] ?? '') + bytes.toString('latin1');
  }
  return output;
}
