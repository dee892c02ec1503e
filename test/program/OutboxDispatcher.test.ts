/** Events on their way to the broker (X1): what is sent, when, in which order, and what is marked. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as Instant from "../../src/domain/Instant.ts"
import * as OutboxDispatcher from "../../src/program/OutboxDispatcher.ts"
import { acked } from "../../src/services/EventPublisher.ts"
import { EventPublisherControl } from "../fakes/MemoryEventPublisher.ts"
import { OutboxLockControl } from "../fakes/MemoryRunLock.ts"
import { WakeUpsControl } from "../fakes/MemoryWakeUps.ts"
import { addEvents, count, event, fresh, ids, metric, settle, storedEvents } from "../support/Deliveries.ts"

const start = Effect.forkChild(OutboxDispatcher.run, { startImmediately: true })

const sizes = Effect.map(
  Effect.flatMap(EventPublisherControl, ({ sent }) => sent),
  (batches) => batches.map((batch) => batch.length)
)
const log = Effect.flatMap(EventPublisherControl, (broker) => Effect.map(broker.log, ids))

describe("OutboxDispatcher", () => {
  it.effect("publishes what waits at once, byte for byte as it was stored, and marks it (X1)", () =>
    Effect.gen(function* () {
      const broker = yield* EventPublisherControl
      yield* TestClock.adjust("3 seconds")
      yield* addEvents(event(2, { key: 9 }), event(1))
      yield* start
      yield* settle
      const stored = event(2, { key: 9 })
      const [first, second] = yield* broker.log
      assert.strictEqual(first?.id, 1n)
      assert.deepInclude(second, {
        key: stored.messageKey,
        value: JSON.stringify(stored.payload),
        headers: stored.headers
      })
      assert.deepStrictEqual(
        (yield* storedEvents).map((row) => row.deliveredAt),
        [Instant.fromMillis(3000), Instant.fromMillis(3000)]
      )
      assert.strictEqual(yield* metric("messenger_outbox_published_total"), 2)
      assert.strictEqual(yield* metric("messenger_outbox_publish_latency_seconds"), 2)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("sends at most 500 rows at once, one send after the other, until nothing waits (X1)", () =>
    Effect.gen(function* () {
      const broker = yield* EventPublisherControl
      yield* broker.answerWith((batch) =>
        Effect.as(
          Effect.sleep("1 second"),
          batch.map(() => acked)
        )
      )
      yield* addEvents(...count(1201, event))
      yield* start
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(yield* sizes, [500, 500, 201])
      assert.deepStrictEqual(
        yield* log,
        count(1201, (n) => n)
      )
      assert.strictEqual(yield* broker.atOnce, 1)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("sends at most 800 KB at once, and a row above that alone (X1)", () =>
    Effect.gen(function* () {
      const padded = (n: number) => event(n, { padding: n === 5 ? 900_000 : 250_000 })
      yield* addEvents(...count(8, padded))
      yield* start
      yield* settle
      assert.deepStrictEqual(yield* sizes, [3, 1, 1, 3])
      assert.deepStrictEqual(
        yield* log,
        count(8, (n) => n)
      )
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("counts the bytes of key, value and headers in UTF-8, with an allowance for each row (X1)", () =>
    Effect.sync(() => {
      const row = { ...event(1), key: "ключ", value: "значение", headers: { a: "й" } }
      assert.strictEqual(OutboxDispatcher.bytesOf(row), 8 + 16 + 1 + 2 + 100)
      const rows = count(500, (n) => ({ ...row, id: BigInt(n), value: "x".repeat(1600 - 8 - 3 - 100) }))
      assert.deepStrictEqual(
        OutboxDispatcher.intoSends([...rows, row]).map((send) => send.length),
        [500, 1]
      )
    })
  )

  it.effect("wakes up for a new row before its poll (X1)", () =>
    Effect.gen(function* () {
      yield* start
      yield* TestClock.adjust("10 millis")
      yield* addEvents(event(1))
      yield* settle
      assert.deepStrictEqual(yield* log, [])
      yield* (yield* WakeUpsControl).signalEvents
      yield* settle
      assert.deepStrictEqual(yield* log, [1])
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("loses no more than one poll by a lost wake-up (X1)", () =>
    Effect.gen(function* () {
      yield* start
      yield* settle
      yield* addEvents(event(1))
      yield* TestClock.adjust("999 millis")
      assert.deepStrictEqual(yield* log, [])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* log, [1])
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("publishes a row of a lower id that was committed later", () =>
    Effect.gen(function* () {
      yield* start
      yield* addEvents(event(5))
      yield* TestClock.adjust("1 second")
      yield* addEvents(event(4))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* log, [5, 4])
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("holds its lock while it delivers and at no other time, and asks for it only when a row waits (X1)", () =>
    Effect.gen(function* () {
      const broker = yield* EventPublisherControl
      const lock = yield* OutboxLockControl
      const held: Array<boolean> = []
      yield* broker.answerWith((batch) =>
        Effect.map(lock.isHeld, (isHeld) => {
          held.push(isHeld)
          return batch.map(() => acked)
        })
      )
      yield* addEvents(event(1))
      yield* start
      yield* settle
      assert.deepStrictEqual(held, [true])
      assert.isFalse(yield* lock.isHeld)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect(
    "lets a running send settle when it is stopped, marks its acks, claims no more, frees the lock last (X1)",
    () =>
      Effect.gen(function* () {
        const broker = yield* EventPublisherControl
        const lock = yield* OutboxLockControl
        const reached = yield* Deferred.make<void>()
        const answered = yield* Deferred.make<void>()
        yield* broker.answerWith((batch) =>
          Deferred.succeed(reached, undefined).pipe(
            Effect.andThen(Deferred.await(answered)),
            Effect.as(batch.map(() => acked))
          )
        )
        yield* addEvents(...count(600, event))
        const fiber = yield* start
        yield* Deferred.await(reached)
        const stopping = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
        yield* TestClock.adjust("30 seconds")
        assert.isTrue(yield* lock.isHeld, "while the send is under way")
        assert.isUndefined(stopping.pollUnsafe())
        yield* Deferred.succeed(answered, undefined)
        yield* Fiber.join(stopping)
        const stored = yield* storedEvents
        assert.strictEqual(stored.filter((row) => row.deliveredAt !== null).length, 500)
        assert.deepStrictEqual(yield* sizes, [500])
        assert.isFalse(yield* lock.isHeld)
      }).pipe(Effect.provide(fresh()))
  )

  it.effect("publishes once with two instances on one table, also while one is in mid-send", () =>
    Effect.gen(function* () {
      const broker = yield* EventPublisherControl
      yield* broker.answerWith((batch) =>
        Effect.as(
          Effect.sleep("700 millis"),
          batch.map(() => acked)
        )
      )
      yield* addEvents(...count(2000, event))
      yield* start
      yield* start
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(
        yield* log,
        count(2000, (n) => n)
      )
      assert.strictEqual(yield* broker.atOnce, 1)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("takes over from an instance that holds the lock and dies", () =>
    Effect.gen(function* () {
      const broker = yield* EventPublisherControl
      const lock = yield* OutboxLockControl
      yield* broker.answerWith((batch, n) => (n === 0 ? Effect.never : Effect.succeed(batch.map(() => acked))))
      yield* addEvents(event(1))
      // Detached: nothing waits for a process that is gone.
      yield* Effect.forkDetach(OutboxDispatcher.run, { startImmediately: true })
      yield* start
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* sizes, [1])
      yield* lock.lose
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* log, [1])
    }).pipe(Effect.provide(fresh()))
  )
})
