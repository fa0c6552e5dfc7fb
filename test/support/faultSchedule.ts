/** A random mix of faults, drawn from a seed and said in words: what goes wrong on a connection, where, and how often dials fail. */
import {
  type FaultRule,
  type FlowShape,
  hasMethod,
  type MessagePredicate,
  type SeededRandom,
} from '@exec-server/testing';

const faultLinks = ['websocket', 'memory'] as const;
type FaultLinkName = (typeof faultLinks)[number];

export interface FaultSchedule {
  readonly link: FaultLinkName;
  /** In memory: the end the faults stand at. */
  readonly end: 'client' | 'server';
  /** Each is due once; they are armed when the first connection is ready. */
  readonly rules: readonly FaultRule[];
  /** How many dials fail after each loss that the client notices. */
  readonly refusals: readonly number[];
  readonly words: readonly string[];
}

type When = FaultRule['when'];
type Fault = Exclude<FaultRule['do'], string>;
interface Drawn<T> {
  readonly value: T;
  readonly words: string;
}

const has =
  (member: string): MessagePredicate =>
  (text) =>
    text.includes(`"${member}"`);

/** Points of a conversation: requests and notifications by method, answers by a member that nothing else has. */
const points: Readonly<Record<'up' | 'down', readonly (readonly [string, MessagePredicate])[]>> = {
  up: [
    'initialize',
    'initialized',
    'process/start',
    'process/write',
    'process/read',
    'process/ack',
    'process/terminate',
    'process/release',
  ].map((method) => [method, hasMethod(method)]),
  down: [
    ...['process/output', 'process/exited', 'process/closed'].map((method) => [method, hasMethod(method)] as const),
    ['the answer to initialize', has('environmentInfo')],
    ['the answer to process/start', has('sandboxType')],
    ['the answer to process/write', has('acceptedOffset')],
    ['the answer to process/read', has('nextSeq')],
  ],
};

export function drawSchedule(random: SeededRandom): FaultSchedule {
  const link = random.pick(faultLinks);
  const end = random.pick(['client', 'server'] as const);
  const rules = Array.from({ length: 2 + random.integer(6) }, () => drawRule(random, link, end));
  const refusals = Array.from({ length: 8 }, () => (random.integer(4) === 0 ? 1 + random.integer(3) : 0));
  return {
    link,
    end,
    rules: rules.map(({ value }) => value),
    refusals,
    words: [
      link === 'memory' ? `memory, faults at the end of the ${end}` : link,
      ...rules.map(({ words }) => words),
      `dials refused after each loss: ${refusals.join(' ')}`,
    ],
  };
}

function drawRule(random: SeededRandom, link: FaultLinkName, end: 'client' | 'server'): Drawn<FaultRule> {
  const when = drawPoint(random);
  const fault = drawFault(random, link, end);
  return { value: { when: when.value, do: fault.value, times: 1 }, words: `${when.words}: ${fault.words}` };
}

function drawPoint(random: SeededRandom): Drawn<When> {
  const direction = random.pick(['up', 'down'] as const);
  const kind = random.integer(5);
  if (kind <= 1) {
    const [name, predicate] = random.pick(points[direction]);
    return kind === 0
      ? { value: { direction, beforeMessage: predicate }, words: `before ${name}` }
      : { value: { direction, afterMessage: predicate }, words: `after ${name}` };
  }
  if (kind === 2) {
    const afterMessages = 1 + random.integer(12);
    return { value: { direction, afterMessages }, words: `after ${afterMessages} messages ${direction}` };
  }
  // As often within the first hundred bytes as within the last hundred thousands.
  const afterBytes = Math.ceil(Math.exp(random.next() * Math.log(direction === 'up' ? 60_000 : 400_000)));
  return { value: { direction, afterBytes }, words: `after ${afterBytes} bytes ${direction}` };
}

function drawFault(random: SeededRandom, link: FaultLinkName, end: 'client' | 'server'): Drawn<Fault> {
  const fault = link === 'memory' ? messageFault(random, end) : byteFault(random);
  return { value: fault, words: JSON.stringify(fault) };
}

function cut(random: SeededRandom): Fault {
  return { type: 'cut', hard: random.integer(3) > 0 };
}

function silentCut(random: SeededRandom): Fault {
  return { type: 'cut', silentMs: 1 + random.integer(25) };
}

function stall(random: SeededRandom): Fault {
  return { type: 'stall', direction: random.pick(['up', 'down'] as const), ms: 1 + random.integer(25) };
}

function byteFault(random: SeededRandom): Fault {
  switch (random.integer(8)) {
    case 0:
      return silentCut(random);
    case 1:
      return stall(random);
    case 2:
      return { type: 'halfClose', direction: random.pick(['up', 'down'] as const) };
    case 3:
    case 4:
      return { type: 'shape', direction: random.pick(['up', 'down'] as const), shape: drawShape(random) };
    default:
      return cut(random);
  }
}

function drawShape(random: SeededRandom): FlowShape {
  switch (random.integer(3)) {
    case 0:
      return { splitBytes: 1 + random.integer(2_000) };
    case 1:
      return { drip: { bytes: 2_000 + random.integer(20_000), pauseMs: random.integer(3) } };
    default:
      return { delayMs: 1 + random.integer(15) };
  }
}

function messageFault(random: SeededRandom, end: 'client' | 'server'): Fault {
  switch (random.integer(6)) {
    case 0:
      return silentCut(random);
    case 1:
      return stall(random);
    case 2:
      // The end at which it stands hears of it.
      return { type: 'halfClose', direction: end === 'client' ? 'down' : 'up' };
    case 3:
      // The server is not told that the client has left.
      return end === 'server' ? { type: 'silence' } : cut(random);
    default:
      return cut(random);
  }
}
