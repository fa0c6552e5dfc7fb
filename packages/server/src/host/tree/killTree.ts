/**
 * Ends a tree. Nothing is signalled on what an earlier scan said alone: in the same tick the start time is read again,
 * which names one process for good, and with it the session or the mark. What remains is a process that ends within
 * these microseconds while its number goes round to a stranger. Without /proc nothing is signalled: `method` is `none`.
 */
import type { Clock } from '../../clock.js';
import { errnoCode } from '../startErrors.js';
import { type FindMethod, findTree, type Tree, type TreeMember, type TreeQuery } from './findTree.js';
import { hasMark } from './mark.js';
import { isDead, type ProcessStat, readEnviron, readStat } from './procfs.js';

/** Throws an errno error when it cannot. */
export type SendSignal = (pid: number, signal: string) => void;

export interface KillTreeOptions extends TreeQuery {
  readonly clock: Clock;
  /** TERM first, KILL after this many milliseconds; 0: KILL at once. */
  readonly graceMs: number;
  /** How long KILL is tried; what is left then cannot be killed, or starts itself anew faster than it is found. Default 5000. */
  readonly forceMs?: number;
  /** Which members to end. Default: all. */
  readonly select?: (member: TreeMember) => boolean;
  /** Default: `process.kill`. */
  readonly send?: SendSignal | undefined;
}

export interface KillTreeResult {
  /** What a last look found alive. */
  readonly left: readonly { readonly pid: number; readonly argv: readonly string[] }[];
  /** Whether some outlived the grace and were sent KILL. */
  readonly escalated: boolean;
  /** Of the last look. */
  readonly method: FindMethod;
  readonly complete: boolean;
}

const FORCE_MS = 5_000;
const MOST_ROUNDS = 100;
/** Longest wait for the dying before the next look for new ones. */
const LOOK_AGAIN_MS = 250;
/** So many looks that find nobody and yet are not complete are the answer. */
const MOST_DOUBTS = 4;
/** A long grace costs a look in so many milliseconds; the end of those that are known is seen at once. */
const LONGEST_PAUSE_MS = 5_000;
const SHORTEST_WAIT_MS = 2;
const LONGEST_WAIT_MS = 50;

export async function killTree(options: KillTreeOptions): Promise<KillTreeResult> {
  const kill = new TreeKill(options);
  if (options.graceMs > 0) await kill.ask(options.graceMs);
  return kill.force(options.forceMs ?? FORCE_MS);
}

class TreeKill {
  readonly #options: KillTreeOptions;
  readonly #known: Map<number, number>;
  readonly #asked = new Set<string>();
  #last: Tree = { members: [], method: 'none', complete: false };
  #escalated = false;

  constructor(options: KillTreeOptions) {
    this.#options = options;
    this.#known = new Map(options.known);
  }

  /** Ends when nothing is left or the grace is over. */
  async ask(graceMs: number): Promise<void> {
    const { clock } = this.#options;
    const end = clock.now() + graceMs;
    let pause = LOOK_AGAIN_MS;
    for (let looks = 1; ; looks += 1) {
      const members = await this.#look();
      if (members?.length === 0) return;
      // Those of the second look raced with the first; later ones may be the cleanup of a program that was asked.
      for (const member of members ?? []) {
        if (looks <= 2) this.#askOne(member);
        this.#wake(member);
      }
      if (clock.now() >= end) return;
      await this.#settle(members ?? [], Math.min(end, clock.now() + pause));
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }

  async force(forceMs: number): Promise<KillTreeResult> {
    const { clock } = this.#options;
    const end = clock.now() + forceMs;
    let doubts = 0;
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      const members = await this.#look();
      // A look that is not complete may have met a process within an exec.
      if (members?.length === 0) doubts += this.#last.complete || this.#last.method === 'none' ? MOST_DOUBTS : 1;
      if (doubts >= MOST_DOUBTS || clock.now() >= end) break;
      this.#killAll(members ?? []);
      await this.#settle(members ?? [], Math.min(end, clock.now() + LOOK_AGAIN_MS));
    }
    const { method, complete } = this.#last;
    const left = this.#selected().filter(isAlive);
    return { left: left.map(({ pid, argv }) => ({ pid, argv })), escalated: this.#escalated, method, complete };
  }

  /** Undefined: no look was possible, for want of descriptors. */
  async #look(): Promise<readonly TreeMember[] | undefined> {
    const { mark, groupLeader } = this.#options;
    try {
      this.#last = await findTree({ mark, groupLeader, known: this.#known });
    } catch (error) {
      if (errnoCode(error) === undefined) throw error;
      this.#last = { ...this.#last, complete: false };
      return undefined;
    }
    for (const { pid, startTime } of this.#last.members) this.#known.set(pid, startTime);
    return this.#selected();
  }

  #selected(): readonly TreeMember[] {
    const { select } = this.#options;
    return select === undefined ? this.#last.members : this.#last.members.filter(select);
  }

  /** TERM, once; a second one makes some programs drop what they are saving. */
  #askOne(member: TreeMember): void {
    const { mark, send } = this.#options;
    if (this.#asked.has(nameOf(member))) return;
    this.#asked.add(nameOf(member));
    signalMember(member, mark, 'SIGTERM', send);
  }

  /** A stopped process takes TERM only once it goes on; the stop may take effect after the TERM was sent. */
  #wake(member: TreeMember): void {
    const { mark, send } = this.#options;
    if (!this.#asked.has(nameOf(member)) || stillIs(member, mark)?.state !== 'T') return;
    signalMember(member, mark, 'SIGCONT', send);
  }

  #killAll(members: readonly TreeMember[]): void {
    const { mark, graceMs, groupLeader, select, send } = this.#options;
    const own = attempt(() => readStat(process.pid));
    if (typeof own !== 'object') return;
    const sessions = new Set([groupLeader.pid, ...members.map(({ pid }) => pid)]);
    const killed = new Set<number>();
    for (const member of members) {
      const stat = stillIs(member, mark);
      if (stat === undefined) continue;
      // A group takes the signal whole, so that none of it forks away from it. It is all ours when its session began in
      // the tree; a mark alone may have been carried into a session of others.
      const whole = select === undefined && sessions.has(stat.session) && stat.pgrp > 1 && stat.pgrp !== own.pgrp;
      if (whole && killed.has(stat.pgrp)) continue;
      if (whole) killed.add(stat.pgrp);
      deliver(whole ? -stat.pgrp : stat.pid, 'SIGKILL', send);
      this.#escalated ||= graceMs > 0;
    }
  }

  /** Until none of them lives, at most until `end`. */
  async #settle(members: readonly TreeMember[], end: number): Promise<void> {
    const { clock } = this.#options;
    let rest = members;
    let wait = members.length > 0 ? SHORTEST_WAIT_MS : LONGEST_WAIT_MS;
    do {
      const ms = Math.min(wait, Math.max(0, end - clock.now()));
      await new Promise<void>((resolve) => clock.after(ms, resolve));
      const alive = rest.findIndex(isAlive);
      rest = alive < 0 ? [] : rest.slice(alive);
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    } while (rest.length > 0 && clock.now() < end);
  }
}

function nameOf({ pid, startTime }: TreeMember): string {
  return `${pid} ${startTime}`;
}

/** Signals one process if it is still the one that was found. `refused`: it changed user. */
export function signalMember(
  member: TreeMember,
  mark: string | undefined,
  signal: string,
  send?: SendSignal,
): 'sent' | 'gone' | 'refused' {
  return stillIs(member, mark) === undefined ? 'gone' : deliver(member.pid, signal, send);
}

const sendToHost: SendSignal = (pid, signal) => process.kill(pid, signal);

function deliver(pid: number, signal: string, send: SendSignal = sendToHost): 'sent' | 'gone' | 'refused' {
  try {
    send(pid, signal);
    return 'sent';
  } catch (error) {
    const code = errnoCode(error);
    if (code === undefined) throw error;
    return code === 'ESRCH' ? 'gone' : 'refused';
  }
}

/** What it is now; undefined when it is over, or not provably the same. */
function stillIs(member: TreeMember, mark: string | undefined): ProcessStat | undefined {
  const stat = attempt(() => readStat(member.pid));
  if (typeof stat !== 'object' || stat.startTime !== member.startTime || isDead(stat)) return undefined;
  if (stat.session === member.session) return stat;
  const environ = attempt(() => readEnviron(member.pid));
  return mark !== undefined && typeof environ === 'object' && hasMark(environ, mark) ? stat : undefined;
}

/** In doubt, yes. */
function isAlive(member: TreeMember): boolean {
  const stat = attempt(() => readStat(member.pid));
  return stat === 'failed' || (stat?.startTime === member.startTime && !isDead(stat));
}

/** `failed`: this server has no descriptors left. */
function attempt<T>(read: () => T): T | 'failed' {
  try {
    return read();
  } catch (error) {
    if (errnoCode(error) === undefined) throw error;
    return 'failed';
  }
}
