/** What the bodies of tests run against: a server of ours over some link, or another one that speaks the same wire. */
import { type ClientOptions, join, type Joined, links } from '../links.js';

export interface Subject {
  readonly name: string;
  /** Whether the server has our additions; a foreign one tells less, and lacks what has no name in the base protocol. */
  readonly extended: boolean;
  readonly join: (client?: ClientOptions) => Promise<Joined>;
}

/** Ours, over each kind of link. */
export const subjects: readonly Subject[] = links.map((link) => ({
  name: link,
  extended: true,
  join: (client = {}) => join(link, { client }),
}));
