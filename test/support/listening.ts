/** Servers of one test file on loopback ports. */
import type { AddressInfo, Server, Socket } from 'node:net';

const cleanUps: (() => Promise<void>)[] = [];

/** The address of a server that listens from now on. */
export async function listen(server: Server): Promise<string> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUps.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return `ws://127.0.0.1:${port}`;
}

/** Ends all of them, and cuts who is connected. */
export async function stopListening(): Promise<void> {
  await Promise.all(cleanUps.splice(0).map((cleanUp) => cleanUp()));
}
