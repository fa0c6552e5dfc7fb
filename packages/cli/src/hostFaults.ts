/** Errors of this host, as Node words them → in words. Pure. */

const meanings: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file; check the path',
  ENOTDIR: 'a part of its path is no folder',
  EISDIR: 'it is a folder, and a file is needed',
  EACCES: 'this user may not access it; change its permissions, or run the command as another user',
  EPERM: 'this user may not access it; change its permissions, or run the command as another user',
  EROFS: 'its file system is read-only; choose another place',
  ENOSPC: 'its disk is full; make room and try again',
  EDQUOT: 'the quota of this user is used up; make room and try again',
  ELOOP: 'symbolic links lead in a circle there',
  ENAMETOOLONG: 'the name is longer than this host takes',
};

/** What went wrong with a file of this host, and what to do. `own`: for what has other words here. */
export function fileFault(error: unknown, own: Readonly<Record<string, string>> = {}): string {
  const text = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
  return own[code] ?? meanings[code] ?? text;
}

/** Why this host does not give an address to listen on, and what to do; undefined for what has no words here. */
export function listenFault(code: unknown, port: number): string | undefined {
  switch (code) {
    case 'EADDRINUSE':
      return 'the port is in use; stop who listens there, or choose another port (0 picks a free one)';
    case 'EADDRNOTAVAIL':
      return 'this host does not have the address; choose one that it has, such as 127.0.0.1';
    case 'EACCES':
      return `this user may not take port ${port}; choose one from 1024, or 0 for a free one`;
    case 'EAFNOSUPPORT':
      return 'this host has no addresses of this family; choose one that it has, such as 127.0.0.1';
    default:
      return undefined;
  }
}
