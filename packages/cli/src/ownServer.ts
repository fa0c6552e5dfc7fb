/** How this command starts a server of its own. */
import { fileURLToPath } from 'node:url';

/** The command line of a server on stdio, from the same installation. */
export function ownServerCommand(): [string, ...string[]] {
  return [process.execPath, fileURLToPath(new URL('../bin/exec-server.js', import.meta.url)), '--listen', 'stdio'];
}
