/** A capability token from a file: never from the command line, where every user of the machine could read it. */
import { readFileSync } from 'node:fs';
import { CommandError } from './exitCodes.js';

/** The trimmed content. Throws CommandError when the file cannot be read or is empty. */
export function readTokenFile(flag: string, path: string): string {
  let content: string;
  try {
    content = readFileSync(path, 'utf8');
  } catch (error) {
    throw new CommandError(`${flag} ${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
  const token = content.trim();
  if (token === '') throw new CommandError(`${flag} ${path}: the file is empty`);
  return token;
}
