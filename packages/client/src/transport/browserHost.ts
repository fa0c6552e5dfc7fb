/** A browser or a webview: its own WebSocket, no programs, no files. */
import { ClientError } from '../errors.js';
import { openSocket } from './browserSocket.js';
import type { Host } from './host.js';

const lacking = (what: string, instead: string): ClientError =>
  new ClientError('NOT_SUPPORTED', `${what} in a browser; ${instead}`);

export const host: Host = {
  openSocket,
  childDialer: () => {
    throw lacking('no server program can be started', 'start it elsewhere and connect to its `url`');
  },
  localDisk: () =>
    Promise.reject(
      lacking('there are no local files', 'use `readFile`, `writeFile`, `readStream` or `writeStream` of `client.fs`'),
    ),
};
