/** How a child's end is told on the wire. */
import { constants } from 'node:os';
import type { ExitReason } from '@exec-server/protocol';
import type { ChildExit } from './child.js';
import type { ProcessExit } from '../processes/eventLog.js';

const SIGNAL_NUMBERS: Readonly<Record<string, number>> = constants.signals;

/** A signal death is 128 + n with the signal's name beside it; an end the host cannot tell is -1, as in the base protocol. */
export function exitOf(exit: ChildExit, reason: ExitReason): ProcessExit {
  if (exit.signal !== null) return { exitCode: 128 + (SIGNAL_NUMBERS[exit.signal] ?? 0), signal: exit.signal, reason };
  return { exitCode: exit.code ?? -1, signal: undefined, reason };
}
