/** `exec-server ls`: what is in folders of the server. */
import { eachOperand, type FileSession, pathOnServer, withFiles } from '../fileSession.js';
import type { ServerChoice } from '../link.js';
import { type Listed, listing, type ListingOptions } from '../listing.js';
import { type Operand, shownName } from '../operands.js';
import { withOutput } from '../output.js';

export interface LsOptions extends ServerChoice, ListingOptions {
  readonly operands: readonly Operand[];
}

export function ls(options: LsOptions): Promise<number> {
  return withFiles('ls', options, async (session) => {
    const isOne = options.operands.length === 1;
    let isFirst = true;
    return await withOutput((output) =>
      eachOperand(session, options.operands, async (operand) => {
        if (output.isGone) return true;
        const found = await look(session, operand);
        const title = isOne || found.isFile ? '' : `${isFirst ? '' : '\n'}${shownName(operand.text)}:\n`;
        isFirst = false;
        await output.pass(title + listing(found.entries, { ...options, all: options.all || found.isFile }));
        return true;
      }),
    );
  });
}

async function look(
  session: FileSession,
  operand: Operand,
): Promise<{ readonly entries: readonly Listed[]; readonly isFile: boolean }> {
  const { fs } = session.client;
  const path = await pathOnServer(session, operand);
  const call = { signal: session.signal };
  const stat = await fs.stat(path, call);
  if (stat.kind === 'directory') return { entries: await fs.list(path, call), isFile: false };
  // Without extensions a link cannot be told from what it leads to.
  const self = stat.isSymlink && session.client.serverInfo?.files === true;
  const shown = self ? await fs.stat(path, { ...call, followSymlinks: false }) : stat;
  return { entries: [{ ...shown, name: operand.path, path }], isFile: true };
}
