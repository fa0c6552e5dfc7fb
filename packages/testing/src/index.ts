/**
 * Breaks connections on purpose, so that an agent or a client of exec-server can be tested against the network it will meet.
 *
 * @example
 * ```ts
 * const server = createExecServer();
 * const listener = await server.listen();
 * const proxy = await startFaultProxy({
 *   target: listener.url,
 *   seed: 42,
 *   rules: [{ when: { direction: 'down', aboutEveryBytes: 50_000 }, do: 'cut', times: 5 }],
 * });
 * const client = await connect({ url: proxy.url });
 * const result = await client.run(['seq', '100000']);
 * // The same output as without the proxy, although the connection was cut five times.
 * ```
 *
 * @packageDocumentation
 */
export {
  type CutAction,
  type Direction,
  type DueAction,
  type FaultAction,
  type FaultRule,
  type FaultTrigger,
  type FlowShape,
  type HalfCloseAction,
  hasMethod,
  type MessageFault,
  type MessagePredicate,
  type ShapeAction,
  type SilenceAction,
  type StallAction,
} from './faultPlan.js';
export {
  type FaultEvent,
  type FaultProxy,
  type FaultProxyCounters,
  type FaultProxyOptions,
  startFaultProxy,
} from './faultProxy.js';
export { describeSeed, type Seed, seededRandom, type SeededRandom } from './random.js';
export { faultyStdio, type FaultStdioOptions, type FaultyStdio, type StdioStreams } from './faultStdio.js';
export { faultTransport, type FaultTransportOptions, type FaultyTransport } from './faultTransport.js';
