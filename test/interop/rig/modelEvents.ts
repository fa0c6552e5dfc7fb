/** What a model says, as events of the Responses endpoint. Pure. */

/** One call of a tool; `arguments` as the tool's schema has them. */
export interface ToolCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

export interface CalledTool extends ToolCall {
  readonly callId: string;
}

interface ServerEvent {
  readonly type: string;
  readonly [member: string]: unknown;
}

export function callEvents(response: string, calls: readonly CalledTool[]): string {
  const items = calls.map((call) => ({
    type: 'function_call',
    id: `item_${call.callId}`,
    call_id: call.callId,
    name: call.name,
    arguments: JSON.stringify(call.arguments),
  }));
  return responseOf(response, items);
}

export function finalEvents(response: string, text: string): string {
  return responseOf(response, [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }]);
}

function responseOf(id: string, items: readonly object[]): string {
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  const done = items.map((item, index) => ({ type: 'response.output_item.done', output_index: index, item }));
  return [
    { type: 'response.created', response: { id } },
    ...done,
    { type: 'response.completed', response: { id, usage } },
  ]
    .map(serverSent)
    .join('');
}

function serverSent(event: ServerEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}
