/** `exec-server cat`: files of the server to stdout. */
import { eachOperand, type FileSession, pathOnServer, withFiles } from '../fileSession.js';
import type { ServerChoice } from '../link.js';
import type { Operand } from '../operands.js';
import { type Output, withOutput } from '../output.js';

export interface CatOptions extends ServerChoice {
  readonly operands: readonly Operand[];
}

export function cat(options: CatOptions): Promise<number> {
  return withFiles('cat', options, async (session) => {
    return await withOutput((output) =>
      eachOperand(session, options.operands, async (operand) => {
        if (!output.isGone) await passFile(session, operand, output);
        return true;
      }),
    );
  });
}

async function passFile(session: FileSession, operand: Operand, output: Output): Promise<void> {
  const path = await pathOnServer(session, operand);
  const stream = session.client.fs.readStream(path, { signal: session.signal });
  // Leaving the loop cancels the stream, which closes the file.
  for await (const bytes of stream) {
    await output.pass(bytes);
    if (output.isGone) return;
  }
}
