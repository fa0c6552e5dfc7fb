/**
 * The command `exec-server`; its subcommands say what they do with `--help`. What a program can use of it is the command line
 * that starts a server: {@link serverCommand}.
 *
 * @packageDocumentation
 */
export { serverCommand } from './serverCommand.js';
