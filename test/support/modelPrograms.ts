/** Random programs for the model test: which commands, how often, with which values. */
import fc from 'fast-check';
import { type Command, MAX_PROCESSES } from './modelCommand.js';
import {
  start,
  startTaken,
  emit,
  exit,
  die,
  endStreams,
  write,
  takeStdin,
  endStdin,
  read,
  list,
  terminate,
  signal,
  release,
  hold,
  letGo,
} from './modelProcessCommands.js';
import {
  cut,
  cutForLong,
  passTime,
  comeBack,
  expire,
  restart,
  takeOver,
  intrude,
  observe,
  leave,
  cutObserver,
  meddle,
  retire,
} from './modelSessionCommands.js';

const index = fc.nat(MAX_PROCESSES - 1);
const small = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 5 });
const large = fc.integer({ min: 1, max: 48 }).map((count) => Array.from({ length: count }, () => 65_536));
const text = fc.stringMatching(/^[a-z]{1,8}$/);
const percent = fc.integer({ min: 0, max: 100 });
const budget = fc.option(fc.oneof(fc.integer({ min: 1, max: 500 }), fc.constant(200_000)), { nil: undefined });
const rarely = fc.integer({ min: 0, max: 3 }).map((drawn) => drawn === 0);

/** Turns until the cut. */
const intoCut = fc.option(fc.nat(40), { nil: undefined, freq: 1 });
const always = fc.constant(null);
const weighted: readonly (readonly [number, fc.Arbitrary<Command>])[] = [
  [4, fc.tuple(rarely, intoCut).map(([drops, cutIt]) => start(drops, cutIt))],
  [4, fc.tuple(index, small).map(([at, sizes]) => emit(at, sizes))],
  [4, fc.tuple(index, large).map(([at, sizes]) => emit(at, sizes))],
  [2, fc.tuple(index, fc.integer({ min: 0, max: 255 })).map(([at, code]) => exit(at, code))],
  [1, index.map(die)],
  [2, index.map(endStreams)],
  [3, fc.tuple(index, text, intoCut).map(([at, words, cutIt]) => write(at, words, cutIt))],
  [1, index.map(takeStdin)],
  [1, index.map(endStdin)],
  [6, fc.tuple(index, percent, budget).map(([at, place, most]) => read(at, place, most))],
  [1, always.map(list)],
  [1, index.map(startTaken)],
  [1, index.map(terminate)],
  [1, index.map(signal)],
  [2, index.map(release)],
  [2, index.map(hold)],
  [1, index.map(letGo)],
  [2, always.map(cut)],
  [2, always.map(cutForLong)],
  [1, fc.constant(1).map(passTime)],
  [3, always.map(comeBack)],
  [1, always.map(expire)],
  [1, fc.oneof({ weight: 3, arbitrary: always.map(cut) }, { weight: 1, arbitrary: always.map(restart) })],
  [1, always.map(takeOver)],
  [1, always.map(intrude)],
  [1, percent.map(observe)],
  [1, always.map(leave)],
  [1, always.map(cutObserver)],
  [1, index.map(meddle)],
  [1, always.map(retire)],
];

export const programs = fc.commands(
  weighted.flatMap(([weight, arbitrary]) => Array.from({ length: weight }, () => arbitrary)),
  { maxCommands: 100, size: 'max' },
);
