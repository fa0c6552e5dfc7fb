import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { buildProgram } from './program.js';

/** The program, whose commands do nothing; `ran` is told which of them would have. */
function idleProgram(ran: (name: string) => void): Command {
  const program = buildProgram(() => {});
  for (const command of [program, ...program.commands]) command.action(() => ran(command.name()));
  return program;
}

function helpOf(command: Command): string {
  let help = '';
  command.configureOutput({ writeOut: (text) => (help += text) });
  command.outputHelp();
  return help;
}

function examplesOf(command: Command): string[] {
  const [, block = ''] = helpOf(command).split('\nExamples:\n');
  return block.split('\n').flatMap((line) => (line.startsWith('  ') ? [line.trim()] : []));
}

/** The words behind `exec-server`, in a line that may set variables before it and be part of a pipe. */
function argumentsOf(line: string): string[] {
  const [part = ''] = line.split(' | ').filter((words) => /(^|\s)exec-server( |$)/.test(words));
  return part.slice(part.indexOf('exec-server')).split(' ').slice(1);
}

const commands = [buildProgram(() => {})].flatMap((program) => [program, ...program.commands]);

describe('the help of each command', () => {
  it.each(commands.map((command) => [command.name(), command] as const))(
    'has examples of %s, each of which is a right command line',
    async (name, command) => {
      const lines = examplesOf(command);
      expect(lines.length).toBeGreaterThan(0);
      for (const line of lines) {
        const ran: string[] = [];
        await idleProgram((running) => ran.push(running)).parseAsync(argumentsOf(line), { from: 'user' });
        expect(ran, line).toHaveLength(1);
      }
      expect(lines.filter((line) => argumentsOf(line)[0] === name || name === 'exec-server')).not.toHaveLength(0);
    },
  );

  it.each(commands.map((command) => [command.name(), command] as const))('says what %s is for', (_name, command) => {
    expect(helpOf(command)).toMatch(/^Usage: exec-server [^\n]*\n\n[A-Z][^.]*\./);
  });
});
