/** What one connection has to do with files: open handles, watches, http streams. */
import type { BulkReplies } from '../connection/bulkReplies.js';
import { Parked } from '../connection/parking.js';
import { type Attempt, FileAnswers } from './fileAnswers.js';
import { FileHandles } from './fileHandles.js';
import { type Claims, PathOrder } from './pathOrder.js';
import { Watches } from './watch/watches.js';

/** Something of the connection that ends with it: watches, http streams. */
export interface Ending {
  /** Never rejects. */
  end(): Promise<void>;
}

export interface ConnectionFilesHost {
  /** For large answers: output of processes goes first. */
  readonly bulk: BulkReplies;
  /** Whether so much waits to be sent that even small answers have to wait their turn. */
  readonly isFull: () => boolean;
  /** Sends a notification to the client of this connection. */
  readonly notify: (method: string, params: object) => void;
  /** Whether the transport takes another notification now; `ConnectionFiles.drained` is called when it may again. */
  readonly hasRoom: () => boolean;
}

export class ConnectionFiles {
  readonly handles = new FileHandles();
  readonly host: ConnectionFilesHost;
  readonly watches: Watches;
  readonly answers: FileAnswers;
  #order = new PathOrder();
  readonly #parts = new Set<Ending>();
  #ended = false;
  #over: Promise<void> | undefined;

  constructor(host: ConnectionFilesHost) {
    this.host = host;
    this.watches = new Watches(host);
    this.own(this.watches);
    this.answers = new FileAnswers({ ...host, isOver: () => this.ended });
  }

  /** Whether the connection takes no part any more. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Works on paths in its turn and within the bound of work on the disk; keeps no place in the queue of requests. */
  run<T>(claims: Claims, action: () => Promise<T>): Parked<T> {
    return new Parked(this.turn(claims, action));
  }

  /** In the order of requests about these paths alone: `action` takes its place on the disk itself. */
  inOrder<T>(claims: Claims, action: () => Promise<T>): Promise<T> {
    return this.#order.run(claims, action);
  }

  /** The same for a part of a request. */
  turn<T>(claims: Claims, action: () => Promise<T>): Promise<T> {
    return this.#order.run(claims, () => this.answers.onDisk(action));
  }

  /** The same for an answer that may be large because of the bytes in it; see `FileAnswers.read`. */
  read<T extends object>(claims: Claims, attempt: Attempt<T>): Parked<T> {
    return new Parked(this.#order.run(claims, () => this.answers.read(attempt)));
  }

  /** The same for an answer that may take long to collect; see `FileAnswers.collect`. */
  collect<T extends object>(claims: Claims, attempt: Attempt<T>): Parked<T> {
    return new Parked(this.#order.run(claims, () => this.answers.collect(attempt)));
  }

  /** Takes its place behind what earlier connections of the session have under way. To be called before the first request. */
  join(order: PathOrder): void {
    this.#order = order;
  }

  /** Something that has to end with the connection; the returned function says that it has ended by itself. */
  own(part: Ending): () => void {
    this.#parts.add(part);
    return () => void this.#parts.delete(part);
  }

  /** The transport may have room. */
  drained(): void {
    this.watches.drained();
  }

  /** The connection is over. Resolves when nothing of it is left. */
  end(): Promise<void> {
    this.#ended = true;
    this.#over ??= Promise.all([this.handles.end(), ...[...this.#parts].map((part) => part.end())]).then(
      () => undefined,
    );
    return this.#over;
  }
}
