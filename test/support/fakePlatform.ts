/** A host whose children are played by the test, and whose starts take as long as the test wants. */
import { WireError } from '@exec-server/protocol';
import type { Platform, SpawnedChild, SpawnRequest } from '@exec-server/server';
import { FakeChild, FakeOutput, FakeStdin } from './fakeChild.js';

export interface PendingStart {
  readonly request: SpawnRequest;
  /** Forks now, unless the start was cancelled. */
  fork(): FakeChild;
  fail(error: WireError): void;
}

export class FakePlatform implements Platform {
  readonly signals = ['SIGINT', 'SIGTERM', 'SIGKILL'];
  readonly children: FakeChild[] = [];
  /** Starts that wait for the test; stays empty unless `manual`. */
  readonly starting: PendingStart[] = [];
  readonly manual: boolean;

  constructor(options: { manual?: boolean } = {}) {
    this.manual = options.manual ?? false;
  }

  spawn(request: SpawnRequest, cancelled?: () => boolean): Promise<SpawnedChild> {
    return new Promise((resolve, reject) => {
      const start: PendingStart = {
        request,
        fork: () => {
          const child = new FakeChild({
            outputs: [new FakeOutput('stdout')],
            ...(request.stdin === 'pipe' ? { stdin: new FakeStdin() } : {}),
          });
          if (cancelled?.() === true) reject(new WireError('startCancelled', 'the start was cancelled'));
          else {
            this.children.push(child);
            resolve(child);
          }
          return child;
        },
        fail: reject,
      };
      if (this.manual) this.starting.push(start);
      else start.fork();
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
