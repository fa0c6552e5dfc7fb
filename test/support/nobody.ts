/** Runs a module script as a user without privileges; needs root. */
import { spawnSync } from 'node:child_process';

export const NOBODY = 65_534;
export const isRoot = process.getuid?.() === 0;

/** What the script printed; throws with what it complained about. */
export function asNobody(script: string): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    uid: NOBODY,
    gid: NOBODY,
    cwd: '/',
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`the script of nobody failed: ${stderr}`);
  return stdout.trim();
}
