/** One peer on a pair of byte streams; the session ends with them. */
import { type ByteSink, type ByteSource, byteTransport, type CloseReason } from '@exec-server/protocol';
import type { ExecServer } from '../server.js';

/**
 * Serves the peer on the other end of the streams until input ends, after the requests already read are answered; its
 * session then ends, with all its processes. Resolves with the reason of the end. Nothing but protocol lines may be
 * written to `sink`: log to stderr.
 *
 * @example
 * ```ts
 * const server = createExecServer();
 * await serveStdio(server, process.stdin, process.stdout);
 * await server.close();
 * ```
 */
export function serveStdio(server: ExecServer, source: ByteSource, sink: ByteSink): Promise<CloseReason> {
  const transport = byteTransport(source, sink, { label: 'stdio' });
  return server.accept(transport, {
    malformedPrefix: 'failed to parse JSON-RPC message from exec-server stdio',
    endsSession: true,
  });
}
