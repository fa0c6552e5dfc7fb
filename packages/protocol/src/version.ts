/** Protocol version, and how two peers agree on one. Pure. */

/**
 * The version of our extensions. The base protocol has no version of its own: a peer that announces none speaks the base
 * protocol only.
 */
export const PROTOCOL_VERSION = 1;

/** Version of these packages, as `serverInfo.version` and `clientVersion` carry it. */
export const PACKAGE_VERSION = '0.1.0';

/** What the other side speaks: the base protocol alone (`foreign`), or ours in the version both know. */
export type PeerKind = { readonly kind: 'foreign' } | { readonly kind: 'extended'; readonly protocolVersion: number };

/** What the `protocolVersion` of the other side means: absent is a foreign peer, else the lower of both versions counts. */
export function agreeOnVersion(announced: number | undefined): PeerKind {
  if (announced === undefined || announced < 1) return { kind: 'foreign' };
  return { kind: 'extended', protocolVersion: Math.min(announced, PROTOCOL_VERSION) };
}
