/** A process that only delivers must not look dead: neither for a slow receiver nor without one (X1, X2). */
import { assert, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import * as OutboxDispatcher from "../../src/program/OutboxDispatcher.ts"
import * as RealtimeDispatcher from "../../src/program/RealtimeDispatcher.ts"
import { Heartbeat } from "../../src/services/Heartbeat.ts"
import { HubPublisherControl } from "../fakes/MemoryHubPublisher.ts"
import { addSignals, count, fresh, signal } from "../support/Deliveries.ts"

/** The longest time without a sign of life, in milliseconds, while the work runs for ten minutes. */
const longestSilence = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
  let silentSince = 0
  let longest = 0
  const beat = Effect.map(Clock.currentTimeMillis, (now) => {
    longest = Math.max(longest, now - silentSince)
    silentSince = now
  })
  yield* Effect.forkChild(work, { startImmediately: true }).pipe(Effect.provideService(Heartbeat, beat))
  yield* TestClock.adjust("10 minutes")
  yield* beat
  return longest
})

it.effect("shows a sign of life with each push of a batch that takes minutes (X2)", () =>
  Effect.gen(function* () {
    const hub = yield* HubPublisherControl
    yield* hub.answerWith(() => Effect.sleep("4 seconds"))
    yield* addSignals(...count(100, (n) => signal(n, 1)))
    assert.isAtMost(yield* longestSilence(RealtimeDispatcher.run), 5000)
    assert.strictEqual((yield* hub.taken).length, 100)
  }).pipe(Effect.provide(fresh()))
)

it.effect("shows signs of life without a broker (X1)", () =>
  Effect.gen(function* () {
    assert.isAtMost(yield* longestSilence(OutboxDispatcher.runWithoutBroker), 2000)
  }).pipe(Effect.provide(fresh()))
)

it.effect("shows signs of life without a hub (X2)", () =>
  Effect.gen(function* () {
    assert.isAtMost(yield* longestSilence(RealtimeDispatcher.runWithoutHub), 2000)
  }).pipe(Effect.provide(fresh()))
)
