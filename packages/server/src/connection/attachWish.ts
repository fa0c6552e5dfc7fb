/** What the params of `initialize` ask for. Pure. */
import { type InitializeParams, WireError } from '@exec-server/protocol';

export type AttachWish =
  | { readonly kind: 'create'; readonly leaseMs: number | undefined }
  | { readonly kind: 'resume'; readonly id: string; readonly takeOver: boolean }
  | { readonly kind: 'observe'; readonly id: string };

/** Throws WireError `invalidParams` for members that do not go together. */
export function attachWish({ resumeSessionId, attach, takeOver, leaseMs }: InitializeParams): AttachWish {
  const id = resumeSessionId ?? undefined;
  const observes = attach === 'observe';
  if (id === undefined) {
    if (observes) throw unfit('attach', 'an observer names a session by `resumeSessionId`');
    if (takeOver === true) throw unfit('takeOver', 'what is taken over is named by `resumeSessionId`');
    return { kind: 'create', leaseMs: leaseMs ?? undefined };
  }
  if (!observes) return { kind: 'resume', id, takeOver: takeOver ?? false };
  if (takeOver === true) throw unfit('takeOver', 'an observer takes nothing over');
  return { kind: 'observe', id };
}

function unfit(field: string, message: string): WireError {
  return new WireError('invalidParams', message, { field });
}
