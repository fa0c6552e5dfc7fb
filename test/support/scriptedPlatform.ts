/** A host whose children do what the test says, and die of SIGKILL as every program does. */
import type { Platform, SpawnedChild, SpawnRequest } from '@exec-server/server';
import { FakeChild, FakeOutput, FakeStdin } from './fakeChild.js';

export class ScriptedChild extends FakeChild {
  readonly output: FakeOutput;
  readonly input = this.stdin ?? new FakeStdin();

  constructor() {
    const output = new FakeOutput('stdout');
    super({ outputs: [output], stdin: new FakeStdin() });
    this.output = output;
  }

  override signalGroup(signal: string): 'delivered' | 'gone' {
    const answer = super.signalGroup(signal);
    if (signal === 'SIGKILL') {
      queueMicrotask(() => {
        this.exit({ signal });
        this.endOutputs();
      });
    }
    return answer;
  }
}

export class ScriptedPlatform implements Platform {
  readonly signals = ['SIGINT', 'SIGTERM', 'SIGKILL'];
  readonly children: ScriptedChild[] = [];

  spawn(_request: SpawnRequest): Promise<SpawnedChild> {
    const child = new ScriptedChild();
    this.children.push(child);
    return Promise.resolve(child);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
