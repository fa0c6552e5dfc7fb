/**
 * A client program that is killed in the middle of its work: it starts three processes, stores every event it has taken and
 * how far it has come, and never ends by itself.
 *
 * Arguments: URL, file for the session, file for the events. Lines on stdout: `started`, then `busy` once it is in the middle
 * of reading and of writing.
 */
import { appendFileSync, writeFileSync } from 'node:fs';
import { connect } from '@exec-server/client';

const [url = '', sessionFile = '', eventsFile = ''] = process.argv.slice(2);
const PIECE_BYTES = 64 * 1024;
const BUSY_EVENTS = 20;

const client = await connect({ url });
const ended = await client.start({ processId: 'ended', argv: ['sh', '-c', 'echo first; echo last; exit 7'] });
const reader = await client.start({ processId: 'reader', argv: ['sha256sum'], stdin: 'pipe' });
const flood = await client.start({ processId: 'flood', argv: ['seq', '-f', '%015.0f', '0', '999999'] });
writeFileSync(sessionFile, JSON.stringify({ sessionId: client.sessionId, epoch: client.serverInfo?.epoch }));
// One event of it is taken, the others are left for the next program.
for await (const event of ended) {
  store('ended', event);
  break;
}
await ended.closed();
console.log('started');

let isBusy = false;
let written = 0;
let taken = 0;

function noteBusy() {
  if (isBusy || written < BUSY_EVENTS || taken < BUSY_EVENTS) return;
  isBusy = true;
  console.log('busy');
}

async function write() {
  const piece = Buffer.alloc(PIECE_BYTES, 'every byte once ');
  for (;;) {
    await reader.write(piece);
    written += 1;
    noteBusy();
    // The rest is for the next program, were this one not killed before.
    if (written === 10 * BUSY_EVENTS) return;
  }
}

async function read() {
  for await (const event of flood) {
    store('flood', event);
    taken += 1;
    noteBusy();
    // Held back here in the middle of the flood, until the kill.
    if (taken === 2 * BUSY_EVENTS) await new Promise(() => {});
  }
}

/**
 * Output and cursor in one line: a line that is not whole when the program is killed was never stored.
 *
 * @param {string} processId
 * @param {import('@exec-server/client').ProcessEvent} event
 */
function store(processId, event) {
  if (event.type === 'gap') throw new Error('a gap');
  const bytes = event.type === 'output' ? Buffer.from(event.bytes).toString('base64') : '';
  appendFileSync(eventsFile, `${JSON.stringify({ processId, seq: event.seq, bytes })}\n`);
}

await Promise.all([write(), read()]);
