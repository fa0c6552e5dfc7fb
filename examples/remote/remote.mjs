// A server that asks for a token, and a connection that is cut in the middle of a job: nothing is lost, nothing comes twice.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { serverCommand } from '@exec-server/cli';
import { connect, isClientError } from '@exec-server/client';
import { startFaultProxy } from '@exec-server/testing';

const folder = await mkdtemp(join(tmpdir(), 'exec-server-remote-'));
try {
  const token = randomBytes(32).toString('hex');
  const tokenFile = join(folder, 'token');
  await writeFile(tokenFile, token, { mode: 0o600 });

  // The first line on stdout is the address. The last option ends the server with this program, whatever happens here.
  const auth = ['--ws-auth', 'capability-token', '--ws-token-file', tokenFile, '--log-level', 'error'];
  const [node, ...args] = serverCommand('--listen', 'ws://127.0.0.1:0', ...auth, '--exit-on-stdin-close');
  const server = spawn(node, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const { value: url } = await createInterface(server.stdout)[Symbol.asyncIterator]().next();
  if (!url) throw new Error('the server did not start');

  const refusal = await connect({ url, token: 'a guess' }).catch((/** @type {unknown} */ error) => error);
  if (!isClientError(refusal)) throw new Error('a wrong token was accepted');
  console.log(`wrong token: ${refusal.code}, status ${refusal.data.status}`);

  // Stands for the network: three times it resets the connection after 150 kB, in the middle of whatever passes.
  const network = await startFaultProxy({
    target: url,
    rules: [{ when: { direction: 'down', afterBytes: 150_000 }, do: 'cut', times: 3 }],
  });
  const client = await connect({ url: network.url, token, onState: (state) => console.log(`connection: ${state}`) });

  const script = 'echo $$; for part in 1 2 3 4 5 6 7 8 9; do seq ${part}0000 ${part}9999; sleep 0.1; done; echo $$';
  const job = await client.start({ argv: ['sh', '-c', script] });
  let output = '';
  for await (const text of job.text()) output += text;
  const { exitCode } = await job.wait();
  console.log(`cuts: ${network.counters.cuts}, exit code: ${exitCode}, bytes: ${output.length}`);

  const numbers = Array.from({ length: 90_000 }, (_, index) => 10_000 + index);
  if (output !== [job.pid, ...numbers, job.pid, ''].join('\n')) throw new Error('the output is not whole');
  console.log(`process ${job.pid} wrote 10000 to 99999, and each number came once, in order`);

  await client.close();
  await network.close();
  server.stdin.end();
  await once(server, 'exit');
} finally {
  await rm(folder, { recursive: true });
}
