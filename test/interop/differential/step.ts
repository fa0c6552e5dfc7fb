/** What a sequence is made of: requests, and changes on the host behind the servers' backs. Pure. */

export type Params = Readonly<Record<string, unknown>>;

/** In any text `$URI` stands for the URI of the folder the sequence works in, `$PATH` for its path, `$WEB` for an http server. */
export type Step =
  | { readonly do: 'call'; readonly method: string; readonly params: Params }
  | { readonly do: 'host'; readonly change: HostChange }
  /** Waits until the process is closed, and tells its output and exit code. */
  | { readonly do: 'awaitClosed'; readonly processId: string }
  /** Waits until this process has written so many bytes. */
  | { readonly do: 'awaitOutput'; readonly processId: string; readonly bytes: number };

/** Paths are relative to the folder of the sequence. */
export type HostChange =
  | { readonly kind: 'symlink'; readonly target: string; readonly path: string }
  | { readonly kind: 'chmod'; readonly mode: number; readonly path: string }
  | { readonly kind: 'makeFifo'; readonly path: string }
  | { readonly kind: 'makeFolder'; readonly path: string }
  | { readonly kind: 'writeFile'; readonly text: string; readonly path: string };

/** What was seen of one step, and what is left on the disk where it may have changed something. */
export type Seen =
  | { readonly result: unknown; readonly left?: Tree }
  | { readonly error: { readonly code: number; readonly message: string }; readonly left?: Tree }
  /** Nothing came in time, or the connection was lost; the sequence ends here. */
  | { readonly silence: string };

/** Each path below the folder of the sequence with what is there. */
export type Tree = Readonly<Record<string, string>>;

/** One conversation; shorter than its sequence when it fell silent. */
export interface Conversation {
  readonly folder: string;
  readonly seen: readonly Seen[];
}

export const call = (method: string, params: Params): Step => ({ do: 'call', method, params });
