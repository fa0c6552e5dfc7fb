import { describe, expect, it } from 'vitest';
import { serverCommand } from './serverCommand.js';

const optionsOf = (...options: string[]): readonly string[] => serverCommand(...options).slice(2);

describe('the command line of the server', () => {
  it('speaks on stdin and stdout unless it is told where to listen', () => {
    expect(optionsOf()).toEqual(['--listen', 'stdio']);
    expect(optionsOf('--log-level', 'debug')).toEqual(['--listen', 'stdio', '--log-level', 'debug']);
  });

  it.each([
    [['--log-level', 'debug', '--listen', 'ws://127.0.0.1:0']],
    [['--listen=ws://127.0.0.1:0', '--log-level', 'debug']],
    [['doctor', '--json']],
  ])('leaves %j as it is', (options) => {
    expect(optionsOf(...options)).toEqual(options);
  });
});
