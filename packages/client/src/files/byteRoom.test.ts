import { describe, expect, it } from 'vitest';
import { ByteRoom } from './byteRoom.js';

/** Asks for room, and notes when it is given. */
function ask(room: ByteRoom, given: string[], name: string, bytes: number): { forget(): void } {
  const wish = room.acquire(bytes);
  void wish.granted.then(() => given.push(name));
  return wish;
}

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

describe('room for bytes', () => {
  it('is given in order, up to its bound', async () => {
    const room = new ByteRoom(10);
    const given: string[] = [];
    ask(room, given, 'a', 6);
    ask(room, given, 'b', 5);
    ask(room, given, 'c', 1);
    await settled();
    // The small one would fit, and does not pass.
    expect(given).toEqual(['a']);
    room.release(6);
    await settled();
    expect(given).toEqual(['a', 'b', 'c']);
  });

  it('is given alone to what is larger than all of it', async () => {
    const room = new ByteRoom(10);
    const given: string[] = [];
    ask(room, given, 'a', 1);
    ask(room, given, 'large', 11);
    await settled();
    expect(given).toEqual(['a']);
    room.release(1);
    await settled();
    expect(given).toEqual(['a', 'large']);
  });

  it('is not held by whoever gave up, before or after it was given', async () => {
    const room = new ByteRoom(10);
    const given: string[] = [];
    const first = ask(room, given, 'a', 10);
    const second = ask(room, given, 'b', 10);
    ask(room, given, 'c', 10);
    second.forget();
    first.forget();
    await settled();
    expect(given).toEqual(['a', 'c']);
  });
});
