/** Reads the secrets that a choice of authentication names: from files alone, once, when the server starts. */
import { type Authenticate, capabilityToken } from '@exec-server/server';
import { CommandError } from '../exitCodes.js';
import { readTokenFile } from '../tokenFile.js';
import type { AuthChoice } from './choice.js';
import { signedToken } from './signedToken.js';

/** Tokens below this length are warned of: 16 characters of base64 are 96 bits. */
const GUESSABLE = 16;
const SECRET_FLAG = '--ws-shared-secret-file';

/** Throws a CommandError that names the file when it cannot be read or does not hold what is needed. */
export function authenticateBy(choice: AuthChoice, warn: (text: string) => void): Authenticate {
  switch (choice.kind) {
    case 'tokenFile': {
      const token = readTokenFile('--ws-token-file', choice.path);
      if (token.length < GUESSABLE)
        warn(`the token of --ws-token-file has ${token.length} characters and can be guessed`);
      return capabilityToken(token);
    }
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
