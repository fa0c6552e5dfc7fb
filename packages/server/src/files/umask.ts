/** The file mode creation mask of this program. */
import { readFileSync } from 'node:fs';

/** Asked each time: whoever embeds the server may change it. */
export function umask(): number {
  try {
    const digits = /^Umask:\s*([0-7]+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1];
    if (digits !== undefined) return Number.parseInt(digits, 8);
  } catch {
    // No /proc; what follows sets the mask for a moment, for all threads, in order to read it.
  }
  return process.umask();
}
