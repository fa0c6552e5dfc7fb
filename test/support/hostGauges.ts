/** What this program holds of the host, to see that nothing is left of what a test made. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Watches of the host, over all folders. */
export function hostWatches(): number {
  return descriptors()
    .map((fd) => ifThere(() => readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8')))
    .reduce((sum, text) => sum + (text.match(/^inotify /gm)?.length ?? 0), 0);
}

/** What is open below a folder. */
export function openBelow(folder: string): string[] {
  return descriptors()
    .map((fd) => ifThere(() => readlinkSync(`/proc/self/fd/${fd}`)))
    .filter((target) => target.startsWith(`${folder}/`));
}

function descriptors(): string[] {
  return readdirSync('/proc/self/fd');
}

function ifThere(read: () => string): string {
  try {
    return read();
  } catch {
    // Closed since it was listed.
    return '';
  }
}
