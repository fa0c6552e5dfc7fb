/** The `exec-server` command: reads the command line, runs one command, ends with its exit code. */
import { CommanderError } from 'commander';
import { CommandError, ExitCode } from './exitCodes.js';
import { buildProgram } from './program/program.js';

async function main(): Promise<number> {
  let code: number = ExitCode.ok;
  try {
    await buildProgram((finished) => (code = finished)).parseAsync(process.argv);
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
    if (error instanceof CommandError) {
      process.stderr.write(`exec-server: ${error.message}\n`);
      return error.exitCode;
    }
    if (isRefusal(error)) {
      process.stderr.write(`exec-server: ${error.message}\n`);
      return ExitCode.failure;
    }
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.stderr.write(`exec-server: a fault of this program, please report it: ${text}\n`);
    return ExitCode.failure;
  }
}

/** What the client or this host refuses, in words of their own; anything else is a fault of this program. */
function isRefusal(error: unknown): error is Error {
  // By name, since the client is loaded by the commands that need it.
  return error instanceof Error && (['ClientError', 'FileError'].includes(error.name) || 'syscall' in error);
}

/** Resolves when what was written to a pipe has left; `exit` alone would drop it. */
function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.write('', () => resolve());
  });
}

const output = [process.stdout, process.stderr];
// A reader that has gone is no fault of this program; a command that cannot do without it listens itself.
for (const stream of output) stream.on('error', () => {});
const code = await main();
await Promise.all(output.map(flushed));
process.exit(code);
