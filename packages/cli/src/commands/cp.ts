/** `exec-server cp`: files and folders between this host and the server, or on the server. */
import { stat } from 'node:fs/promises';
import { posix } from 'node:path';
import { isFileError, type TransferOptions, type TransferResult } from '@exec-server/client';
import { CommandError, ExitCode } from '../exitCodes.js';
import { eachOperand, type FileSession, pathOnServer, withFiles } from '../fileSession.js';
import { Garbage } from '../garbage.js';
import { say, type ServerChoice } from '../link.js';
import { meansContents, type Operand, shownName } from '../operands.js';
import { TransferLine } from '../transferProgress.js';

export interface CpOptions extends ServerChoice {
  readonly sources: readonly Operand[];
  readonly destination: Operand;
  readonly recursive: boolean;
  readonly overwrite: boolean;
  readonly followSymlinks: boolean;
  readonly quiet: boolean;
}

/** What was left out is named up to here. */
const NAMED_SKIPS = 20;

/** Ends with 1 where anything was left out. */
export async function cp(options: CpOptions): Promise<number> {
  const { sources, destination } = options;
  if (destination.side === 'local' && sources.some(({ side }) => side === 'local')) {
    throw new CommandError(
      'both paths are of this host, so nothing was copied: write remote:PATH for the one on the server, or use cp',
      ExitCode.usage,
    );
  }
  const line = new TransferLine(process.stderr, options.quiet);
  const tell = (text: string): void => {
    line.clear();
    say(text);
  };
  const copy = async (session: FileSession): Promise<number> => {
    try {
      return await new Copy(session, options, line).run();
    } finally {
      line.clear();
    }
  };
  return await withFiles('cp', options, copy, tell);
}

class Copy {
  readonly #session: FileSession;
  readonly #options: CpOptions;
  readonly #line: TransferLine;
  readonly #garbage = new Garbage();
  readonly #sum = { files: 0, directories: 0, links: 0, bytes: 0 };

  constructor(session: FileSession, options: CpOptions, line: TransferLine) {
    this.#session = session;
    this.#options = options;
    this.#line = line;
  }

  async run(): Promise<number> {
    this.#line.begin();
    const { sources, destination } = this.#options;
    if (sources.length > 1 && !destination.path.endsWith('/') && !(await this.#isFolder(destination))) {
      throw new CommandError(
        `several paths need a folder to go to, and ${shownName(destination.text)} is none; end it with / to have it made`,
      );
    }
    const code = await eachOperand(this.#session, sources, (source) => this.#one(source));
    if (this.#sum.files + this.#sum.directories + this.#sum.links > 0) this.#line.finish(this.#sum);
    return code;
  }

  async #one(source: Operand): Promise<boolean> {
    const { destination, recursive } = this.#options;
    if (!recursive && (await this.#isFolder(source))) {
      this.#session.tell(`${shownName(source.text)} is a folder; -r copies it with what is in it`);
      return false;
    }
    if (source.side === 'remote' && destination.side === 'remote') return await this.#onServer(source);
    const { fs } = this.#session.client;
    const options = this.#transferOptions(source);
    const result =
      source.side === 'local'
        ? await fs.upload(source.path, await pathOnServer(this.#session, destination), options)
        : await fs.download(await pathOnServer(this.#session, source), destination.path, options);
    return this.#took(result);
  }

  #transferOptions(source: Operand): TransferOptions {
    const { overwrite, followSymlinks } = this.#options;
    const { files, bytes } = this.#sum;
    return {
      overwrite,
      followSymlinks,
      includeParent: !meansContents(source.path),
      signal: this.#session.signal,
      onProgress: (progress) => {
        this.#garbage.carried(bytes + progress.bytes);
        this.#line.update({ ...progress, files: files + progress.files, bytes: bytes + progress.bytes });
      },
    };
  }

  #took({ skipped, ...done }: TransferResult): boolean {
    this.#sum.files += done.files;
    this.#sum.directories += done.directories;
    this.#sum.links += done.links;
    this.#sum.bytes += done.bytes;
    for (const { path, reason } of skipped.slice(0, NAMED_SKIPS)) {
      this.#session.tell(`left out ${shownName(path)}: ${SKIP_TEXTS[reason]}`);
    }
    if (skipped.length > NAMED_SKIPS) this.#session.tell(`left out ${skipped.length - NAMED_SKIPS} more`);
    return skipped.length === 0;
  }

  /** By the server itself; nothing goes through here. */
  async #onServer(source: Operand): Promise<boolean> {
    const { destination, overwrite, followSymlinks, recursive } = this.#options;
    const { fs } = this.#session.client;
    const from = await pathOnServer(this.#session, source);
    const to = await pathOnServer(this.#session, destination);
    const intoFolder = await this.#isFolder(destination);
    if (!intoFolder && destination.path.endsWith('/') && !(await this.#isFolder(source))) await fs.mkdir(to);
    const isInside = (intoFolder || destination.path.endsWith('/')) && !meansContents(source.path);
    const isNewFolder = !intoFolder && (await this.#isFolder(source));
    const path = isInside && !isNewFolder ? `${to.replace(/\/+$/, '')}/${posix.basename(from)}` : to;
    const { skipped } = await fs.copy(from, path, {
      recursive,
      // A foreign server has one way alone.
      ...(overwrite ? {} : { overwrite }),
      ...(followSymlinks ? { followSymlinks } : {}),
      signal: this.#session.signal,
    });
    if (skipped > 0) this.#session.tell(`left out ${skipped} that are no file, folder or link`);
    return skipped === 0;
  }

  async #isFolder(operand: Operand): Promise<boolean> {
    const path = operand.side === 'local' ? operand.path : await pathOnServer(this.#session, operand);
    try {
      if (operand.side === 'local') return (await stat(path)).isDirectory();
      return (await this.#session.client.fs.stat(path, { signal: this.#session.signal })).kind === 'directory';
    } catch (error) {
      // What is missing is told by the transfer itself, in the words it has for it.
      if (operand.side === 'local' || isFileError(error)) return false;
      throw error;
    }
  }
}

const SKIP_TEXTS: Readonly<Record<TransferResult['skipped'][number]['reason'], string>> = {
  fifo: 'a FIFO',
  socket: 'a socket',
  device: 'a device',
  linkLoop: 'a link into a folder that it lies in',
  danglingLink: 'a link that leads nowhere',
  linksNotSupported: 'the server cannot carry links; --follow-symlinks carries what they lead to',
  notUtf8: 'its name, or the text of the link, is no UTF-8',
  vanished: 'it was gone when it was to be read',
};
