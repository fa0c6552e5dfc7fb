/** `exec-server doctor`: what works on this host. */
import { type Client, connect, isClientError } from '@exec-server/client';
import { checks, type Finding, lookAt } from '../doctor/checks.js';
import { CommandError, ExitCode } from '../exitCodes.js';
import { ownServerCommand } from '../ownServer.js';
import { withOutput } from '../output.js';
import { table } from '../table.js';

export interface DoctorOptions {
  readonly json: boolean;
}

/** Ends with 0 when processes can be run, whatever else is missing. */
export async function doctor({ json }: DoctorOptions): Promise<number> {
  const client = await ownServer();
  const findings: Finding[] = [];
  try {
    // One after the other: a check that hangs is then the one that is named.
    for (const check of checks) findings.push(await lookAt(check, client));
  } finally {
    await client.close();
  }
  const essential = new Set(checks.filter((check) => check.essential).map(({ name }) => name));
  const works = findings.every((finding) => finding.works || !essential.has(finding.name));
  return await withOutput(async (output) => {
    await output.pass(
      json
        ? `${JSON.stringify({ works, checks: findings }, null, 2)}\n`
        : table(findings.map((finding) => [finding.works ? 'ok' : 'no', finding.name, finding.detail])),
    );
    return works ? ExitCode.ok : ExitCode.failure;
  });
}

async function ownServer(): Promise<Client> {
  try {
    return await connect({ command: ownServerCommand(), clientName: 'exec-server doctor' });
  } catch (error) {
    throw isClientError(error) ? new CommandError(`no server could be started here: ${error.message}`) : error;
  }
}
