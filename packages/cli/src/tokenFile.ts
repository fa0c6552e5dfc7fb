/** A secret from a file: never from the command line, where every user of the machine could read it. */
import { readFileSync } from 'node:fs';
import { CommandError } from './exitCodes.js';
import { fileFault } from './hostFaults.js';

/** The trimmed content. Throws CommandError when the file cannot be read, is empty or is not text. */
export function readTokenFile(flag: string, path: string): string {
  const fault = (what: string): CommandError => new CommandError(`${flag} ${path}: ${what}`);
  let content: Buffer;
  try {
    content = readFileSync(path);
  } catch (error) {
    throw fault(fileFault(error));
  }
  const text = content.toString('utf8');
  // What stands for bytes that are no text would make different secrets one.
  if (!Buffer.from(text).equals(content)) throw fault('it is not UTF-8 text; write the token into it as text');
  const token = text.trim();
  if (token === '') throw fault('the file is empty; write the token into it');
  return token;
}
