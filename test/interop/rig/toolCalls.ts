/** Calls of the tools that the agent offers its model, and what its reports on them say. Pure. */
import type { ToolCall } from './modelEvents.js';
import type { ToolOutput } from './scriptedModel.js';

export interface ExecCommand {
  readonly cmd: string;
  /** Default false. */
  readonly tty?: boolean;
  /** How long the agent waits for the end before it reports; 250 to 30,000. Default 10,000. */
  readonly yield_time_ms?: number;
}

export interface WriteStdin {
  readonly session_id: number;
  readonly chars: string;
  readonly yield_time_ms?: number;
}

export function execCommand(command: ExecCommand): ToolCall {
  return { name: 'exec_command', arguments: { ...command } };
}

export function writeStdin(write: WriteStdin): ToolCall {
  return { name: 'write_stdin', arguments: { ...write } };
}

export function viewImage(path: string): ToolCall {
  return { name: 'view_image', arguments: { path } };
}

export interface CommandReport {
  /** Undefined while it runs. */
  readonly exitCode: number | undefined;
  /** By which a running command is written to. */
  readonly sessionId: number | undefined;
  /** The agent's estimate, made from the bytes of the whole output. */
  readonly tokens: number;
  /** As the model sees it, which is cut in the middle when it is long. */
  readonly output: string;
}

export function commandReport(report: ToolOutput | undefined): CommandReport {
  const text = typeof report === 'string' ? report : '';
  const [head, ...rest] = text.split('\nOutput:\n');
  if (head === undefined || rest.length === 0) throw new Error(`no report on a command: ${JSON.stringify(report)}`);
  return {
    exitCode: numberIn(head, /^Process exited with code (-?\d+)$/m),
    sessionId: numberIn(head, /^Process running with session ID (\d+)$/m),
    tokens: numberIn(head, /^Original token count: (\d+)$/m) ?? 0,
    output: rest.join('\nOutput:\n'),
  };
}

/** The session of a command that still runs. */
export function runningSession(report: ToolOutput | undefined): number {
  const { sessionId } = commandReport(report);
  if (sessionId === undefined) throw new Error(`the command does not run: ${JSON.stringify(report)}`);
  return sessionId;
}

function numberIn(text: string, pattern: RegExp): number | undefined {
  const found = pattern.exec(text)?.[1];
  return found === undefined ? undefined : Number(found);
}
