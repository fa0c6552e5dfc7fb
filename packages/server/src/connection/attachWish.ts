/** What the params of `initialize` ask for. Pure. */
import { type InitializeParams, WireError } from '@exec-server/protocol';

export type AttachWish =
  | { readonly kind: 'create'; readonly leaseMs: number | undefined }
  | { readonly kind: 'resume'; readonly id: string; readonly takeOver: boolean }
  | { readonly kind: 'observe'; readonly id: string };

/**
 * Throws WireError: `invalidParams` for members that do not go together, `otherEpoch` for a session of another life of the
 * server than `epoch`, which no session has to be looked for to know.
 */
export function attachWish(params: InitializeParams, epoch: string): AttachWish {
  const { resumeSessionId, attach, takeOver, leaseMs } = params;
  const id = resumeSessionId ?? undefined;
  const observes = attach === 'observe';
  if (id === undefined) {
    if (observes) throw unfit('attach', 'an observer names a session by `resumeSessionId`');
    if (takeOver === true) throw unfit('takeOver', 'what is taken over is named by `resumeSessionId`');
    return { kind: 'create', leaseMs: leaseMs ?? undefined };
  }
  if (takeOver === true && observes) throw unfit('takeOver', 'an observer takes nothing over');
  if ((params.epoch ?? epoch) !== epoch) {
    const message = `the session is of another life of this server, which now has ${epoch}; its processes are gone`;
    throw new WireError('otherEpoch', message, { epoch });
  }
  if (!observes) return { kind: 'resume', id, takeOver: takeOver ?? false };
  return { kind: 'observe', id };
}

function unfit(field: string, message: string): WireError {
  return new WireError('invalidParams', message, { field });
}
