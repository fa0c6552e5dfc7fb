/** Holds back acknowledgements of what arrives before the caller has a handle. */
import type { Consumer, ProcessRecord } from '../registry/processRecord.js';

/**
 * Until the returned function is called nothing that arrives from here on is acknowledged: the server would let go of what the
 * caller has not seen. To be called a turn after the caller has the handle: who iterates at once has begun by then, and nobody
 * else holds back a process. It is not called for a record that came to nothing.
 */
export function holdRecord(record: ProcessRecord): () => void {
  const holder: Consumer = { cursor: record.cursor, backlogBytes: 0, wake: () => {} };
  record.addConsumer(holder);
  return () => record.removeConsumer(holder);
}
