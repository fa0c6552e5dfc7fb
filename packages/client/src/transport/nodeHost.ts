/** Node: sockets by `ws`, server programs as children, the files of this machine. */
import { childDialer } from './child.js';
import type { Host } from './host.js';
import { openSocket } from './nodeSocket.js';

export const host: Host = {
  openSocket,
  childDialer,
  localDisk: async () => (await import('../disk/disk.js')).disk,
};
