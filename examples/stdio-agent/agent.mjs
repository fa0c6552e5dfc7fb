// Four tools for a coding agent: run, poll, write, kill. Output that is too long loses its middle, and says how much.
import { serverCommand } from '@exec-server/cli';
import { connect } from '@exec-server/client';

const client = await connect({ command: serverCommand() }); // the server and its processes end with this program
/** @type {Map<string, { handle: import('@exec-server/client').ProcessHandle, output: import('@exec-server/client').OutputLooks }>} */
const jobs = new Map();

/** @param {{ argv: string[], cwd?: string, waitMs?: number, maxBytes?: number }} options */
async function run({ argv, cwd, waitMs, maxBytes = 10_000 }) {
  const handle = await client.start({ argv, cwd, stdin: 'pipe' });
  jobs.set(handle.processId, { handle, output: handle.collect({ maxBytes }) });
  return poll(handle.processId, waitMs);
}

/** What is new since the last look, at the end of the command or after `waitMs`. @param {string} id */
async function poll(id, waitMs = 10_000) {
  const look = await find(id).output.look({ waitMs });
  if (!look.running) jobs.delete(id);
  return { id, ...look };
}

/** @param {string} id @param {string} text */
const write = (id, text) => find(id).handle.write(text);

/** Ends the command and everything it has started. @param {string} id */
async function kill(id) {
  await find(id).handle.terminate({ graceMs: 2_000, leftovers: 'kill' });
  return poll(id);
}

/** @param {string} id */
function find(id) {
  const job = jobs.get(id);
  if (!job) throw new Error(`no process ${id}: it never was, or its end has been told`);
  return job;
}

// What an agent does with them. A command that asks for something:
const deploy = 'echo building; sleep 1; printf "Deploy? "; read answer; echo "It is $answer"';
let { id, text } = await run({ argv: ['sh', '-c', deploy], waitMs: 0 });
while (!text.endsWith('Deploy? ')) text += (await poll(id, 200)).text;
console.log(text);
await write(id, 'yes\n');
console.log(await poll(id));

// One that writes 6.5 MB, and one that would run for ten minutes:
console.log(await run({ argv: ['sh', '-c', 'yes "naïve café" | head -n 500000'], maxBytes: 50 }));
({ id } = await run({ argv: ['sleep', '600'], waitMs: 100 }));
console.log(await kill(id));
await client.close();
