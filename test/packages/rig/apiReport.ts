/** The public surface of an entry point, as text: names, signatures, what has no words. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import { folderOf, type PackageName } from './workspace.js';

export interface EntryPoint {
  readonly name: PackageName;
  /** The module below `src`, and of the report beside the package's manifest. */
  readonly module: string;
  readonly report: string;
}

export const entryPoints: readonly EntryPoint[] = [
  { name: 'protocol', module: 'index', report: 'protocol.api.md' },
  { name: 'protocol', module: 'schemas', report: 'schemas.api.md' },
  { name: 'server', module: 'index', report: 'server.api.md' },
  { name: 'client', module: 'index', report: 'client.api.md' },
  { name: 'testing', module: 'index', report: 'testing.api.md' },
  { name: 'cli', module: 'index', report: 'cli.api.md' },
];

export const reportPath = ({ name, report }: EntryPoint): string => join(folderOf(name), report);

const silent = { default: { logLevel: ExtractorLogLevel.None } } as const;

export async function reportOf({ name, module, report }: EntryPoint): Promise<string> {
  const folder = folderOf(name);
  const place = await mkdtemp(join(tmpdir(), 'exec-server-api-'));
  try {
    const config = ExtractorConfig.prepare({
      // Where it would stand; relative paths are taken from there.
      configObjectFullPath: join(folder, 'api-extractor.json'),
      packageJsonFullPath: join(folder, 'package.json'),
      configObject: {
        projectFolder: folder,
        mainEntryPointFilePath: join(folder, 'dist', `${module}.d.ts`),
        compiler: { tsconfigFilePath: join(folder, 'tsconfig.json') },
        apiReport: { enabled: true, reportFileName: report, reportFolder: place, reportTempFolder: place },
        docModel: { enabled: false },
        dtsRollup: { enabled: false },
        tsdocMetadata: { enabled: false },
        newlineKind: 'lf',
        messages: {
          compilerMessageReporting: silent,
          extractorMessageReporting: silent,
          tsdocMessageReporting: silent,
        },
      },
    });
    const quiet = (message: { handled: boolean }): void => void (message.handled = true);
    const { errorCount } = Extractor.invoke(config, { localBuild: true, messageCallback: quiet });
    if (errorCount > 0) throw new Error(`${errorCount} errors in the surface of ${name}`);
    return await readFile(join(place, report), 'utf8');
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}
