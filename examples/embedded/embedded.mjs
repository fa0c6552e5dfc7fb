// Server and client in one program, joined in memory, as an editor extension has them.
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@exec-server/client';
import { memoryTransportPair } from '@exec-server/protocol';
import { createExecServer } from '@exec-server/server';

const server = createExecServer();

function activate() {
  return connect({
    transport: () => {
      const [serverEnd, clientEnd] = memoryTransportPair();
      void server.accept(serverEnd);
      return clientEnd;
    },
  });
}

/** @param {import('@exec-server/client').Client} client */
async function deactivate(client) {
  await client.close(); // ends its processes
  await server.close(); // and resolves when nothing of them is left
}

const client = await activate();
try {
  const path = join(tmpdir(), `exec-server-embedded-${process.pid}.txt`);
  await client.fs.writeFile(path, 'pear\napple\n');
  const sorted = await client.run(['sort', path]);
  console.log(`exit code ${sorted.exitCode}:`, sorted.text().trim().split('\n'));
  await client.fs.remove(path);

  await client.start({ argv: ['sleep', '600'] }); // forgotten, as it happens
  console.log('before:', pick(server.gauges()));
} finally {
  await deactivate(client);
}
console.log('after:', pick(server.gauges()));
process.once('beforeExit', () => console.log('nothing is left to wait for: the program ends by itself'));

/** @param {import('@exec-server/server').Gauges} gauges */
function pick({ connections, sessions, runningProcesses, openFiles }) {
  return { connections, sessions, runningProcesses, openFiles };
}
