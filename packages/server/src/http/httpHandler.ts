/** `http/request`: a request of the client, made from where the server stands. */
import { type ParamsOf, type ResultOf, WireError } from '@exec-server/protocol';
import type { Parked } from '../connection/parking.js';
import type { HandlerContext } from '../handlerContext.js';

export function httpRequest(
  context: HandlerContext,
  params: ParamsOf<'http/request'>,
): Parked<ResultOf<'http/request'>> {
  if (context.http === undefined) {
    throw new WireError('httpDisabled', 'http/request is switched off for this connection');
  }
  return context.http.request(context, params);
}
