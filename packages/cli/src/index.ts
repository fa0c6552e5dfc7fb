/** What programs use of the command. */
export { serverCommand } from './serverCommand.js';
