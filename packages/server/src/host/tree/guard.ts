/**
 * The guard kills our children and removes our temporary files when this server dies in whatever way, SIGKILL included. It
 * is a shell (dash: 1.8 MB, of which 0.3 are its own) in a session of its own, which holds one end of a pipe, the list of
 * groups and that of temporary files; the end of the pipe is our death. Listing a group takes 0.02 ms.
 *
 * It signals a group when its leader still has the start time it was listed with. A group without its leader, or what
 * left its group, is found by the mark of this server life in its environment. A leader whose number went to a stranger
 * proves its group empty: the kernel gives no number away while a group has it.
 *
 * `close` ends it by SIGKILL, which leaves it no time to take the end of the pipe for our death.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { Socket } from 'node:net';
import type { BytePath } from '../../paths.js';
import { descriptorsLeft } from '../hostLimits.js';
import { errnoCode } from '../startErrors.js';
import { lifePattern } from './mark.js';
import { procView } from './procfs.js';

/** `$1` is the pattern of our marks, `$2` where grep is. A line cut short by our death has no newline and does not count. */
const script = `
trap '' HUP INT QUIT TERM TSTP
groups=' ' temps=' '
without() {
  kept=$1
  case $1 in *" $2:"*)
    after=\${1#*" $2:"}
    kept="\${1%%" $2:"*} \${after#* }"
  esac
}
while read -r verb key value; do
  case $verb in
    +) without "$groups" "$key"; groups="$kept$key:$value " ;;
    -) without "$groups" "$key"; groups=$kept ;;
    t) temps="$temps$key:$value " ;;
    u) without "$temps" "$key"; temps=$kept ;;
  esac
done
look() {
  read -r line < "/proc/$1/stat" || return 1
  set -- \${line##*") "}
  group=$3 session=$4 start=\${20}
}
orphaned=' '
for entry in $groups; do
  pid=\${entry%:*}
  if look "$pid"; then
    if [ "$start $group" = "\${entry#*:} $pid" ]; then kill -9 "-$pid"; fi
  else
    orphaned="$orphaned$pid "
  fi
done
PATH=$2
set -f
for entry in $temps; do
  set +f
  begins=$(printf %b "\${entry#*:}")
  rm -rf -- "$begins"*.tmp
  for left in "$begins"*.tmp; do
    # A copy of folders that may not be written to.
    if [ -d "$left" ] && [ ! -L "$left" ]; then chmod -R u+rwx -- "$left"; rm -rf -- "$left"; fi
  done
done
set +f
round=0
while [ "$1" ] && [ "$round" -lt 20 ]; do
  found=
  for file in $(grep -ls "$1" /proc/[0-9]*/environ); do
    pid=\${file#/proc/} pid=\${pid%/environ}
    look "$pid" && seen=$start && grep -qs "$1" "$file" && look "$pid" && [ "$start" = "$seen" ] || continue
    found=1
    case $orphaned in *" $group "*) kill -9 "-$group" ;; esac
    kill -9 "$pid"
  done
  [ "$found" ] || break
  round=$((round + 1))
done
`;

const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin';
/** A guard that is this far behind is stuck; a new one takes over. */
const MOST_QUEUED_BYTES = 256 * 1024;
const RESTARTS = 1;
/** What a spawn with one socket pair takes for a moment. */
const GUARD_DESCRIPTORS = 6;
/** Errnos that pass. */
const PASSING = new Set(['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM']);

export interface GuardOptions {
  /** The server life of the marks; without it groups that lost their leader, and what left its group, are not found. */
  readonly life?: string;
  /** Default `/bin/sh`. */
  readonly shell?: string;
  /** Called once, when from now on nobody would end the children if this server died. */
  readonly onUnavailable?: (reason: string) => void;
}

export interface Guard {
  readonly state: 'idle' | 'running' | 'unavailable' | 'closed';
  readonly pid: number | undefined;
  /** Lists the group of a child that leads its session. The first call starts the guard. Never throws, never waits. */
  add(pid: number, startTime: number): void;
  /** To be called once the group is known to be empty, or is to outlive this server. */
  remove(pid: number): void;
  /** Lists files and folders to be removed: those whose path begins so and ends in `.tmp`. `key` is ours to choose. */
  addTemps(key: number, begins: BytePath): void;
  removeTemps(key: number): void;
  /** Ends the guard; it kills and removes nothing. */
  close(): Promise<void>;
}

export function createGuard(options: GuardOptions = {}): Guard {
  return new ShellGuard(options);
}

class ShellGuard implements Guard {
  readonly #options: GuardOptions;
  readonly #groups = new Map<number, number>();
  readonly #temps = new Map<number, string>();
  #state: Guard['state'] = 'idle';
  #shell: ChildProcess | undefined;
  #restarts = 0;

  constructor(options: GuardOptions) {
    this.#options = options;
  }

  get state(): Guard['state'] {
    return this.#state;
  }

  get pid(): number | undefined {
    return this.#shell?.pid;
  }

  add(pid: number, startTime: number): void {
    if (this.#state === 'unavailable' || this.#state === 'closed') return;
    this.#groups.set(pid, startTime);
    if (this.#state === 'idle') this.#start();
    else this.#tell(`+ ${pid} ${startTime}\n`);
  }

  remove(pid: number): void {
    if (this.#groups.delete(pid) && this.#state === 'running') this.#tell(`- ${pid}\n`);
  }

  addTemps(key: number, begins: BytePath): void {
    if (this.#state === 'unavailable' || this.#state === 'closed') return;
    const escaped = shellBytes(begins);
    this.#temps.set(key, escaped);
    if (this.#state === 'idle') this.#start();
    else this.#tell(`t ${key} ${escaped}\n`);
  }

  removeTemps(key: number): void {
    if (this.#temps.delete(key) && this.#state === 'running') this.#tell(`u ${key}\n`);
  }

  async close(): Promise<void> {
    const shell = this.#shell;
    this.#state = 'closed';
    this.#groups.clear();
    this.#temps.clear();
    if (shell?.pid === undefined) return;
    const ended = new Promise((resolve) => shell.once('exit', resolve));
    shell.ref();
    shell.kill('SIGKILL');
    await ended;
  }

  #start(): void {
    // The next start of a child, or the next temporary file, tries again. Without descriptors /proc cannot be read either.
    if (!descriptorsLeft(GUARD_DESCRIPTORS)) return;
    if (procView() === 'none') {
      this.#giveUp('there is no /proc to tell processes apart');
      return;
    }
    const { life, shell: program = '/bin/sh' } = this.#options;
    const pattern = life === undefined ? '' : lifePattern(life);
    let shell: ChildProcess;
    try {
      shell = spawn(program, ['-c', script, 'exec-server-guard', pattern, process.env['PATH'] ?? DEFAULT_PATH], {
        cwd: '/',
        // Without our own outer marks: who ends a tree that we are in ends us, and the guard then ends the rest.
        env: { NODE_V8_COVERAGE: undefined },
        stdio: ['pipe', 'ignore', 'ignore'],
        detached: true,
      });
    } catch (error) {
      this.#failed(errnoCode(error) ?? String(error));
      return;
    }
    this.#shell = shell;
    this.#state = 'running';
    shell.once('exit', () => this.#ended(shell));
    shell.on('error', (error) => {
      if (this.#shell === shell && shell.pid === undefined) this.#failed(errnoCode(error) ?? error.message);
    });
    // EPIPE, when it died; its exit is what counts.
    shell.stdin?.on('error', () => undefined);
    shell.unref();
    if (shell.stdin instanceof Socket) shell.stdin.unref();
    if (shell.pid === undefined) return;
    let list = '';
    for (const [pid, startTime] of this.#groups) list += `+ ${pid} ${startTime}\n`;
    for (const [key, begins] of this.#temps) list += `t ${key} ${begins}\n`;
    this.#tell(list);
  }

  #tell(lines: string): void {
    const stdin = this.#shell?.stdin;
    if (stdin === undefined || stdin === null) return;
    stdin.write(lines);
    if (stdin.writableLength > MOST_QUEUED_BYTES) this.#shell?.kill('SIGKILL');
  }

  #ended(shell: ChildProcess): void {
    this.#shell = undefined;
    shell.stdin?.destroy();
    if (this.#state === 'closed') return;
    if (this.#restarts >= RESTARTS) {
      this.#giveUp('the guard process ended twice');
      return;
    }
    this.#restarts += 1;
    this.#state = 'idle';
    if (this.#groups.size > 0 || this.#temps.size > 0) this.#start();
  }

  #failed(cause: string): void {
    this.#shell = undefined;
    if (this.#state === 'closed') return;
    if (PASSING.has(cause)) this.#state = 'idle';
    else this.#giveUp(`the guard process cannot be started: ${cause}`);
  }

  #giveUp(reason: string): void {
    this.#state = 'unavailable';
    this.#groups.clear();
    this.#temps.clear();
    const { onUnavailable } = this.#options;
    if (onUnavailable !== undefined) queueMicrotask(() => onUnavailable(reason));
  }
}

/** For `printf %b`, without blanks and line ends. */
function shellBytes(path: BytePath): string {
  return path.replace(/[^A-Za-z0-9/._-]/g, (byte) => `\\0${byte.charCodeAt(0).toString(8).padStart(3, '0')}`);
}
