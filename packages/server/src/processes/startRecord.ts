/** What stays known of a start. Types only. */
import type { DetachedPolicy } from './history.js';

/** What a process was started with. */
export interface StartRecord {
  readonly argv: readonly string[];
  readonly tty: boolean;
  /** Equal for starts with the same params; made when it is asked for. */
  readonly digest: () => string;
  /** The environment mark of its tree. */
  readonly mark: string;
}

/** What a start asks for beyond the fork. */
export interface StartWishes {
  readonly lingerMs?: number | undefined;
  readonly detached?: DetachedPolicy | undefined;
}
