/** Default limits. Names end in their unit. Pure. */

const KIB = 1024;
const MIB = 1024 * KIB;

/** Largest single WebSocket frame a peer may send us; the reference refuses one byte more. */
export const MAX_FRAME_BYTES = 16 * MIB;
/** Largest message, whether one line or many WebSocket fragments, as the reference has it. */
export const MAX_MESSAGE_BYTES = 64 * MIB;
/** JSON values in one message, as the reference has it. */
export const MAX_JSON_VALUES = 262_144;
/** Nesting levels in one message, as the reference has it. */
export const MAX_JSON_DEPTH = 127;
/** Largest reply we send; a foreign client takes frames of 16 MiB, so a reply stays well below. */
export const MAX_REPLY_BYTES = 12 * MIB;
/** Most output bytes in one `process/read` reply: base64 grows them by a third, which keeps the reply under MAX_REPLY_BYTES. */
export const MAX_READ_BYTES = 8 * MIB;
/** Most chunks in one `process/read` reply: five JSON values a chunk must fit MAX_JSON_VALUES. */
export const MAX_READ_CHUNKS = 50_000;

/** Output kept in memory for one process after it was delivered, and while nobody is attached. */
export const RETAINED_BYTES_PER_PROCESS = 4 * MIB;
/** Output kept in memory for the processes of one session together; the one that holds most gives way. */
export const RETAINED_BYTES_PER_SESSION = 256 * MIB;
/** Output kept in memory for all processes of a server together. */
export const RETAINED_BYTES_PER_SERVER = 1024 * MIB;
/** Output chunks kept for one process; a flood of tiny writes must not cost more bookkeeping than bytes. */
export const RETAINED_CHUNKS_PER_PROCESS = 50_000;
/** Undelivered output at which an attached process's streams are paused; half of the window, so nothing undelivered is evicted. */
export const PAUSE_PROCESS_BYTES = 2 * MIB;
/** Undelivered output at which paused streams go on. */
export const RESUME_PROCESS_BYTES = 1 * MIB;
/** Output sent to a client with flow control and not yet acknowledged, per process. */
export const CREDIT_BYTES_PER_PROCESS = 1 * MIB;
/** A client with flow control acknowledges at the latest after this many bytes; a quarter of the credit keeps the pipe full. */
export const ACK_EVERY_BYTES = 256 * KIB;
/** A client without flow control is asked at the latest after this many bytes whether they have arrived. */
export const CONFIRM_EVERY_BYTES = 128 * KIB;
/** Events pushed behind a hole to a client that knows no gaps: the reference's client holds 256. */
export const EVENTS_BEHIND_HOLE = 200;
/** Output bytes pushed behind a hole to a client that knows no gaps: the reference's client holds 1 MiB. */
export const BYTES_BEHIND_HOLE = 768 * KIB;
/** Output that waits for the disk over all processes of a server at which every child whose output does is held. */
export const SPOOL_PENDING_BYTES_PER_SERVER = 64 * MIB;
/** A client with flow control acknowledges at the latest after so many events: a window of tiny chunks is full by number first. */
export const ACK_EVERY_EVENTS = 4096;
/** Bytes handed to a transport and not yet taken by the kernel at which pumps stop; replies never wait behind more than this. */
export const OUTBOX_HIGH_WATER_BYTES = 256 * KIB;
/** Replies waiting in a transport at which no further request of that connection is read. */
export const REPLY_HIGH_WATER_BYTES = 4 * MIB;

/** Bytes accepted for one process's stdin and not yet taken by its pipe; a write beyond it waits before it is accepted. */
export const STDIN_QUEUE_BYTES = 1 * MIB;
/** Writes of one process that wait for room in its stdin queue. */
export const STDIN_WAITING_WRITES = 128;
/** Bytes of the writes of one process that wait for room in its stdin queue; a single larger write still may. */
export const STDIN_WAITING_BYTES = 4 * MIB;
/** Write ids remembered per process, as the reference has it. */
export const REMEMBERED_WRITE_IDS = 4096;
/** Longest write id; the reference has no limit and keeps 4096 of any length. */
export const MAX_WRITE_ID_BYTES = 4 * KIB;
/** Longest process id. */
export const MAX_PROCESS_ID_BYTES = 64 * KIB;

/** Requests of one connection that are unanswered at a time, parked ones included; one more is refused. */
export const PENDING_REQUESTS_PER_CONNECTION = 8192;
/** Bytes of the unanswered requests of one connection; one more is refused, a single one of any size is not. */
export const PENDING_REQUEST_BYTES = 64 * MIB;
/** Bytes of messages that were read and not looked at yet at which reading stops. */
export const INBOUND_QUEUE_BYTES = 16 * MIB;
/** Requests of one connection that run at a time; parked ones do not count. */
export const CONCURRENT_REQUESTS = 64;
/** Children being started at a time, over all sessions. */
export const CONCURRENT_STARTS = 8;
/** Connections of a server at a time; one more is refused with 503. */
export const MAX_CONNECTIONS = 1024;
/** Sessions of a server at a time, detached ones included; one more is refused with `tooManySessions`. */
export const MAX_SESSIONS = 1024;
/** Processes of one session that run or are retained. */
export const MAX_PROCESSES_PER_SESSION = 16_384;
/** Exited processes kept per session; the oldest go first. */
export const EXITED_PROCESSES_PER_SESSION = 1024;
/** Output bytes kept for exited processes of one session; the oldest processes go first. */
export const EXITED_BYTES_PER_SESSION = 64 * MIB;
/** Ids of expired processes remembered per session, so that reading one says expired and not unknown. */
export const TOMBSTONES_PER_SESSION = 4096;
/** Ids of expired sessions remembered by a server. */
export const EXPIRED_SESSIONS_REMEMBERED = 4096;

/** Largest file `fs/readFile` answers with, and largest body of a buffered `http/request`: base64 of it fits MAX_REPLY_BYTES. */
export const MAX_READ_FILE_BYTES = 9 * MIB - KIB;
/** Largest block of `fs/readBlock` and `fs/writeBlock`, as the reference has it. */
export const MAX_FILE_BLOCK_BYTES = 1 * MIB;
/** Files up to here are answered side by side; larger answers are made one after the other. */
export const SMALL_FILE_BYTES = 64 * KIB;
/** Bytes waiting in a transport at which no further large file answer is made: output of processes goes first. */
export const FILE_REPLY_HIGH_WATER_BYTES = 256 * KIB;
/** Open files and archives of one connection, as the reference has it. */
export const FILE_HANDLES_PER_CONNECTION = 128;
/** Longest handle id, as the reference has it. */
export const MAX_HANDLE_ID_BYTES = 32;
/** Staged writes of one session that are neither committed nor aborted. */
export const STAGES_PER_SESSION = 128;
/** Longest id of a stage, an operation or a watch. */
export const MAX_FILE_ID_BYTES = 64;
/** Results of file operations and commits remembered per session, so that a repeat is answered and not done again. */
export const REMEMBERED_OPERATIONS = 4096;
/** File requests of one connection that work on the disk at a time: the host has few threads for all of them. */
export const CONCURRENT_FILE_REQUESTS = 8;
/** Directory entries in one answer; more are asked for in pages. */
export const MAX_DIRECTORY_ENTRIES = 50_000;
/** Levels below the start that one `fs/walk` enters, as the reference has it. */
export const MAX_WALK_DEPTH = 64;
/** Directories one `fs/walk` reads, as the reference has it. */
export const MAX_WALK_DIRECTORIES = 10_000;
/** Entries in one answer of `fs/walk`, as the reference has it. */
export const MAX_WALK_ENTRIES = 50_000;
/** Watches of one connection; one more is refused with `tooManyWatches`. */
export const WATCHES_PER_CONNECTION = 32;
/** Paths all watches of one connection watch together. */
export const WATCHED_PATHS_PER_CONNECTION = 100_000;
/** Changes in one `fs/changed`; when more come at a time the client is told that some were dropped. */
export const MAX_WATCH_CHANGES = 1024;
/** How long changes are collected before they are told. */
export const WATCH_BATCH_MS = 50;
/** Paths of one `fs/watchMissing`, as the reference has it. */
export const MAX_MISSING_PATHS = 64;
/** `http/request`s of one connection that wait for their answer at a time; more wait for their turn. */
export const HTTP_REQUESTS_PER_CONNECTION = 64;
/** Longest id of a streamed http response: it stands in every delta. */
export const MAX_HTTP_REQUEST_ID_BYTES = 4 * KIB;
/** Bytes of http responses a client holds for readers that are behind, over all of them, as the reference has it. */
export const HTTP_QUEUED_BYTES_PER_CLIENT = 16 * MIB;
/** Streamed http responses of one connection at a time. */
export const HTTP_STREAMS_PER_CONNECTION = 64;
/** Largest delta of a streamed http response, as the reference has it. */
export const MAX_HTTP_DELTA_BYTES = 256 * KIB;
/** Redirects of one `http/request` that are followed, as the reference has it. */
export const MAX_HTTP_REDIRECTS = 10;

/** How long a detached session lives, as the reference has it. */
export const SESSION_LEASE_MS = 80_000;
/** Longest lease a client may ask for. */
export const MAX_SESSION_LEASE_MS = 24 * 60 * 60 * 1000;
/** How long an exited process stays readable after its close, as the reference has it. */
export const EXITED_RETENTION_MS = 80_000;
/** How long a resume waits for the requests of the lost connection; a client waits INITIALIZE_TIMEOUT_MS for its answer. */
export const SETTLE_WAIT_MS = 5_000;
/** How long pushes of a process wait for its first read after a resume. */
export const FIRST_READ_WAIT_MS = 30_000;
/** WebSocket ping interval of the server. */
export const PING_INTERVAL_MS = 10_000;
/** How long nothing has come from a peer, and nothing of what it was sent has left, until another client may replace it. */
export const SUSPECT_MS = 25_000;
/** The same for cutting it: long after, since one that merely does not read is slow and not dead. */
export const IDLE_LIMIT_MS = 120_000;
/** Clients that lost a session to another one and are told so when they come back, per session. */
export const TAKEN_OVER_REMEMBERED = 64;
/** Longest delay a timer of the host holds: 2^31 - 1 ms; durations are clamped to it. */
export const MAX_TIMER_MS = 2_147_483_647;
/** How long a connection attempt may take. */
export const CONNECT_TIMEOUT_MS = 10_000;
/** How long the answer to `initialize` may take. */
export const INITIALIZE_TIMEOUT_MS = 10_000;
/** How long a client goes on trying after a cut; shorter than SESSION_LEASE_MS because the two clocks start apart. The value is that of the reference. */
export const RECOVERY_MS = 45_000;

/** Events a client holds behind a hole, per process, as the reference has it. */
export const REORDER_EVENTS = 4096;
/** Bytes a client holds behind a hole, per process. */
export const REORDER_BYTES = 4 * MIB;
/**
 * Output bytes a client asks for at a time where it reads what pushes did not bring: little, so that a connection that is cut
 * all the time still makes progress; pushes go on behind the answer.
 */
export const CATCH_UP_READ_BYTES = 256 * KIB;
/** Output bytes a client keeps for a process nobody iterates yet, for a late subscriber. */
export const CLIENT_TAIL_BYTES = 1 * MIB;

/** A duration in milliseconds as a timer can hold it. */
export function clampTimerMs(ms: number): number {
  return Math.min(Math.max(Math.trunc(ms), 0), MAX_TIMER_MS);
}
