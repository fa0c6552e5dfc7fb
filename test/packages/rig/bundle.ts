/** The client as a bundler makes it for a page. */
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { root } from './workspace.js';

export interface Bundle {
  readonly code: string;
  readonly minifiedBytes: number;
  readonly gzippedBytes: number;
  /** What a page would have to find by itself; none may be. */
  readonly external: readonly string[];
}

/** Rejects where something of it cannot be had in a browser, with what and where. */
export async function bundleClient(): Promise<Bundle> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: "export * from '@exec-server/client';", resolveDir: root },
    bundle: true,
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    minify: true,
    write: false,
    metafile: true,
    logLevel: 'silent',
  });
  const [file] = outputFiles;
  if (file === undefined || outputFiles.length !== 1) throw new Error(`one file expected, not ${outputFiles.length}`);
  const external = Object.values(metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path));
  return {
    code: file.text,
    minifiedBytes: file.contents.byteLength,
    gzippedBytes: gzipSync(file.contents).byteLength,
    external,
  };
}
