// Runs a program as another user: the ids, then the program and its arguments.
import { pathToFileURL } from 'node:url';

const [uid, gid, program, ...args] = process.argv.slice(2);
process.setgroups([]);
process.setgid(Number(gid));
process.setuid(Number(uid));
process.argv = [process.argv[0], program, ...args];
await import(pathToFileURL(program).href);
