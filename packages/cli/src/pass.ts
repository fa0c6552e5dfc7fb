/** Bytes to a stream of ours, at the pace of its reader. */
import type { Writable } from 'node:stream';

/** 128 + SIGPIPE: the reader of our output has gone. */
export const READER_GONE = 141;

/** Waits while the reader of our stream is behind, which holds back where the bytes come from. */
export function pass(stream: Writable, bytes: Uint8Array | string): Promise<void> {
  if (stream.write(bytes) || stream.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const ends = ['drain', 'error', 'close'] as const;
    const goOn = (): void => {
      for (const end of ends) stream.off(end, goOn);
      resolve();
    };
    for (const end of ends) stream.on(end, goOn);
  });
}
