/** Reads the secrets that a choice of authentication names: from files alone, once, when the server starts. */
import { type Authenticate, capabilityToken } from '@exec-server/server';
import { CommandError } from '../exitCodes.js';
import { readTokenFile } from '../tokenFile.js';
import type { AuthChoice } from './choice.js';
import { signedToken } from './signedToken.js';

const SECRET_FLAG = '--ws-shared-secret-file';

/** Throws a CommandError that names the file when it cannot be read or does not hold what is needed. */
export function authenticateBy(choice: AuthChoice): Authenticate {
  switch (choice.kind) {
    case 'tokenFile':
      return capabilityToken(readTokenFile('--ws-token-file', choice.path));
    case 'tokenDigest':
      return capabilityToken({ sha256: choice.sha256 });
    case 'signedToken': {
      const secret = readTokenFile(SECRET_FLAG, choice.secretFile);
      try {
        return signedToken(secret, choice.expected);
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        throw new CommandError(`${SECRET_FLAG} ${choice.secretFile}: ${error.message}`);
      }
    }
    default:
      return choice satisfies never;
  }
}
