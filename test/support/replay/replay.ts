/** Walks the lines of a recorded conversation against the server program. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { until } from '../until.js';
import { compare } from './compare.js';
import { Allowance, type Difference } from './difference.js';
import { dialWebSocket, speakOverStdio } from './line.js';
import { fill } from './placeholders.js';
import { probe } from './probe.js';
import { ReplaySession } from './session.js';
import { type ReplayWire, Subject } from './subject.js';
import type { Control, JsonObject, Line, Send, Transcript } from './transcript.js';

const CLOSE_MS = 7_000;

class Replay {
  readonly #subject: Subject;
  readonly #transcript: Transcript;
  readonly #allowance: Allowance;
  readonly #sessions = new Map<string, ReplaySession>();
  readonly #bound: Map<string, string>;

  constructor(subject: Subject, transcript: Transcript, differences: readonly Difference[]) {
    this.#subject = subject;
    this.#transcript = transcript;
    this.#allowance = new Allowance(transcript.header.scenario, differences);
    this.#bound = new Map(subject.bound);
  }

  /** Ids of the differences that were needed. */
  get used(): ReadonlySet<string> {
    return this.#allowance.used;
  }

  async run(): Promise<void> {
    const { lines, header } = this.#transcript;
    if (header.connections === undefined && lines.some(({ dir }) => dir === 'send')) await this.#open('A');
    for (const [index, line] of lines.entries()) {
      try {
        await this.#step(line);
      } catch (error) {
        // The header is line 1.
        const where = `${header.scenario} line ${index + 2}`;
        throw new Error(`${where}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
      }
    }
    for (const [name, session] of this.#sessions) expect(session.leftOver(), `left over on ${name}`).toEqual([]);
  }

  /** Lets go of connections that are open still. */
  end(): void {
    for (const { line } of this.#sessions.values()) line?.abort();
  }

  async #step(line: Line): Promise<void> {
    switch (line.dir) {
      case 'send':
        return this.#send(line);
      case 'recv': {
        const binds = await this.#session(line.conn).take(line.msg, this.#bound);
        for (const [name, value] of binds) this.#bound.set(name, value);
        return undefined;
      }
      case 'ctl':
        return this.#control(line);
      default:
        return line satisfies never;
    }
  }

  #send({ conn, msg: recorded, raw, gen, binary = false, partial = false }: Send): void {
    const session = this.#session(conn);
    const msg = recorded && this.#allowance.restate(recorded);
    if (msg !== undefined) session.sent(msg);
    const generated = gen && gen.prefix + gen.repeat.repeat(gen.times) + gen.suffix;
    const text = raw ?? generated ?? fill(JSON.stringify(msg), this.#bound);
    session.line?.send(text, { binary, partial });
  }

  async #control(control: Control): Promise<void> {
    const { url } = this.#subject;
    switch (control.op) {
      case 'open':
        return this.#open(control.conn);
      case 'abort':
        return this.#session(control.conn).line?.abort();
      case 'close': {
        const { line } = this.#session(control.conn);
        line?.end();
        await until(() => line?.closeCode !== undefined, 'the close to be answered', CLOSE_MS);
        return undefined;
      }
      case 'end-input':
        return this.#session(control.conn).line?.end();
      case 'sleep':
        await sleep(control.ms);
        return undefined;
      case 'ignore':
        return this.#session(control.conn).ignore(control.method);
      case 'closed-by-server': {
        const session = this.#session(control.conn);
        // A server that answers has not closed.
        await until(() => session.line?.closeCode !== undefined || session.holdsAnswer, 'the close', CLOSE_MS);
        this.#expectAlike({ closeCode: control.code }, { closeCode: session.line?.closeCode });
        return undefined;
      }
      case 'exited':
      case 'server-exit':
        await until(() => this.#subject.exit === control.code, `exit code ${control.code}`, CLOSE_MS);
        return undefined;
      case 'signal-server':
        this.#subject.child.kill(control.signal);
        return undefined;
      case 'http': {
        if (url === undefined) throw new Error('no listener over stdio');
        const secret = Object.values(this.#transcript.header.files ?? {})[0]?.trim() ?? '';
        const { expected, actual } = await probe(control, { url, secret });
        this.#expectAlike(expected, actual, control.request);
        return undefined;
      }
      default:
        return control satisfies never;
    }
  }

  #expectAlike(expected: JsonObject, actual: JsonObject, request?: object): void {
    const { mismatches } = compare(expected, actual, this.#bound);
    // What was asked is an object of JSON, as everything in a transcript.
    const exchange = { expected, actual, request: request as JsonObject | undefined };
    expect(this.#allowance.settle(mismatches, exchange), JSON.stringify(request)).toEqual([]);
  }

  async #open(name = 'A'): Promise<void> {
    const session = new ReplaySession(this.#allowance);
    this.#sessions.set(name, session);
    const { url, child } = this.#subject;
    session.line =
      url === undefined ? speakOverStdio(child, session.receive) : await dialWebSocket(url, session.receive);
  }

  #session(name = 'A'): ReplaySession {
    const session = this.#sessions.get(name);
    if (session === undefined) throw new Error(`connection ${name} was not opened`);
    return session;
  }
}

/** Resolves with the ids of the differences that were needed; throws at the first line that is not as recorded. */
export async function replay(
  transcript: Transcript,
  wire: ReplayWire,
  differences: readonly Difference[],
): Promise<ReadonlySet<string>> {
  await using subject = await Subject.start(transcript.header, wire);
  const walk = new Replay(subject, transcript, differences);
  try {
    await walk.run();
  } finally {
    walk.end();
  }
  return walk.used;
}
