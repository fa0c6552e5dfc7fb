/** One watched folder of the host, with names as bytes. Notices when the host may have dropped events without a word. */
import { Buffer } from 'node:buffer';
import { type FSWatcher, readFileSync, watch } from 'node:fs';
import { type BytePath, nativeBytes } from '../../paths.js';

export interface FolderListener {
  /** Something happened to this entry, or to the folder itself, by its own name; undefined: the host does not say to which. */
  touched(name: string | undefined): void;
  /** Events of any folder may be missing. */
  lost(): void;
  /** Nothing more comes. */
  failed(error: Error): void;
}

/**
 * All watches of a program share one queue of the host. Where it is full the host drops events, and the runtime does not say so: a
 * queue's worth of events in one turn of the event loop tells.
 */
class EventQueue {
  readonly #open = new Set<FolderWatch>();
  #suspectEvents: number | undefined;
  #eventsThisTurn = 0;

  opened(watched: FolderWatch): void {
    this.#open.add(watched);
  }

  closed(watched: FolderWatch): void {
    this.#open.delete(watched);
  }

  counted(): void {
    if (this.#eventsThisTurn === 0) setImmediate(() => this.#turnEnded());
    this.#eventsThisTurn += 1;
  }

  #turnEnded(): void {
    // Events of folders that are not watched any more fill the queue, too, and are not seen here.
    this.#suspectEvents ??= Math.floor(queueLength() / 2);
    const suspect = this.#eventsThisTurn >= this.#suspectEvents;
    this.#eventsThisTurn = 0;
    if (suspect) for (const watched of [...this.#open]) watched.listener.lost();
  }
}

const queue = new EventQueue();

export class FolderWatch {
  readonly listener: FolderListener;
  readonly #watcher: FSWatcher;

  /** Every later event is told. Throws what the host says where it cannot be watched. */
  constructor(path: BytePath, listener: FolderListener) {
    this.listener = listener;
    this.#watcher = watch(nativeBytes(path), { encoding: 'buffer', persistent: false }, (_event, name) => {
      queue.counted();
      listener.touched(Buffer.isBuffer(name) ? name.toString('latin1') : undefined);
    });
    this.#watcher.on('error', (error) => listener.failed(error));
    queue.opened(this);
  }

  /** Nothing is told any more. */
  close(): void {
    queue.closed(this);
    this.#watcher.close();
  }
}

function queueLength(): number {
  const usual = 16_384;
  try {
    const length = Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8'));
    return length > 0 ? length : usual;
  } catch {
    // Other systems do not say.
    return usual;
  }
}
