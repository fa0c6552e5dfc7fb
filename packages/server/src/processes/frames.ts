/**
 * The notifications of a process as bytes of a JSON text, written by hand: no JSON.stringify over payloads, one base64
 * encoding a chunk.
 */
import { Buffer } from 'node:buffer';
import type { LogEvent, LogGap, OutputEvent } from './eventLog.js';

export class FrameEncoder {
  readonly #id: string;

  constructor(processId: string) {
    this.#id = JSON.stringify(processId);
  }

  event(event: LogEvent): string {
    switch (event.kind) {
      case 'output':
        return `{"method":"process/output","params":{"processId":${this.#id},"seq":${event.seq},"stream":"${event.stream}","chunk":"${base64Of(event)}"}}`;
      case 'exited': {
        const signal = event.signal === undefined ? '' : `,"signal":${JSON.stringify(event.signal)}`;
        return `{"method":"process/exited","params":{"processId":${this.#id},"seq":${event.seq},"exitCode":${event.exitCode},"sandboxDenied":false${signal}}}`;
      }
      case 'closed':
        return `{"method":"process/closed","params":{"processId":${this.#id},"seq":${event.seq}}}`;
      default:
        return event satisfies never;
    }
  }

  gap(gap: LogGap): string {
    const bytes = gap.bytes === undefined ? '' : `,"bytes":${gap.bytes}`;
    return `{"method":"process/gap","params":{"processId":${this.#id},"fromSeq":${gap.fromSeq},"throughSeq":${gap.throughSeq}${bytes}}}`;
  }
}

export function base64Of(event: OutputEvent): string {
  const { bytes } = event;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64');
}
