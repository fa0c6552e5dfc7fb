/** Flags of the reference's command that mean nothing here: refused with what to do instead, not as misspelt. Pure. */
import { CommandError, ExitCode } from '../exitCodes.js';

const REGISTRATION = 'this server registers nowhere; use --listen ws://IP:PORT, and let clients connect to it';
const SANDBOX = 'there is no sandbox here; leave it out, and start the server in the container that is to confine it';
const PROXY =
  'leave it out; http requests take the proxy of the environment variables HTTP_PROXY, HTTPS_PROXY and NO_PROXY';
const CONFIGURATION = 'there is no configuration file; every setting is a flag that --help lists';

/** As commander declares them → what to do instead. */
const instead: Readonly<Record<string, string>> = {
  '-c, --config [value]': CONFIGURATION,
  '--enable [value]': CONFIGURATION,
  '--disable [value]': CONFIGURATION,
  '--strict-config': CONFIGURATION,
  '--linux-sandbox-pid-namespace [value]': SANDBOX,
  '--linux-sandbox-transparent-tcp': SANDBOX,
  '--tcp-upstream-proxy [value]': PROXY,
  '--proxy-private-ips-via-upstream': PROXY,
  '--remote [value]': REGISTRATION,
  '--remote-transport [value]': REGISTRATION,
  '--environment-id [value]': REGISTRATION,
  '--name [value]': REGISTRATION,
  '--use-agent-identity-auth': REGISTRATION,
  '--registration-bearer-stdin': REGISTRATION,
  '--executor-credential-stdin': REGISTRATION,
  '--chatgpt-token-stdin': REGISTRATION,
  '--chatgpt-account-id [value]': REGISTRATION,
  '--aws-sigv4': REGISTRATION,
  '--aws-profile [value]': REGISTRATION,
  '--aws-region [value]': REGISTRATION,
  '--aws-service [value]': REGISTRATION,
};

export const foreignFlags: readonly string[] = Object.keys(instead);

/** `flag`: as it is declared. */
export function refuseForeign(flag: string): never {
  const long = /--[\w-]+/.exec(flag)?.[0] ?? flag;
  throw new CommandError(`${long}: ${instead[flag] ?? REGISTRATION}`, ExitCode.usage);
}

/** The one subcommand of the reference; undefined for any other word. */
export function foreignCommand(word: string): string | undefined {
  return word === 'forward' ? `forward: ${REGISTRATION}` : undefined;
}
