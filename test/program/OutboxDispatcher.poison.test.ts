/** A row whose content the broker refuses: found, set aside, tried again ever later, parked; its neighbours go out. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as OutboxDispatcher from "../../src/program/OutboxDispatcher.ts"
import { acked } from "../../src/services/EventPublisher.ts"
import type { PendingEvent } from "../../src/services/IntegrationOutbox.ts"
import { all, EventPublisherControl, refusing, rejected, unavailable } from "../fakes/MemoryEventPublisher.ts"
import {
  addEvents,
  correlationOf,
  count,
  event,
  fresh,
  ids,
  keyOf,
  metric,
  Shown,
  said,
  settle,
  storedEvents
} from "../support/Deliveries.ts"

const start = Effect.forkChild(OutboxDispatcher.run, { startImmediately: true })
const broker = EventPublisherControl
const log = Effect.flatMap(broker, ({ log }) => Effect.map(log, ids))
const sent = Effect.flatMap(broker, ({ sent }) => Effect.map(sent, (batches) => batches.map(ids)))
const rowOf = (n: number) => Effect.map(storedEvents, (rows) => rows.find((row) => row.id === BigInt(n)))

const poison =
  (...numbers: ReadonlyArray<number>) =>
  (row: PendingEvent) =>
    numbers.includes(Number(row.id))

const refuse = Effect.fnUntraced(function* (...numbers: ReadonlyArray<number>) {
  yield* (yield* broker).answerWith(refusing(poison(...numbers)))
})

describe("OutboxDispatcher with poison", () => {
  it.effect("publishes 99 of 100 rows in order around a refused one, and writes down why it was refused", () =>
    Effect.gen(function* () {
      yield* refuse(50)
      yield* addEvents(...count(100, event))
      yield* start
      yield* settle
      assert.deepStrictEqual(
        yield* log,
        count(100, (n) => n).filter((n) => n !== 50)
      )
      assert.isAtMost((yield* sent).length, 1 + 2 * 7)
      const row = yield* rowOf(50)
      assert.deepInclude(row, { attempts: 1, lastError: rejected.reason, deliveredAt: null, parkedAt: null })
      assert.strictEqual(row?.nextAttemptAt, 30_000_000n)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("finds several refused rows, also first, last and side by side", () =>
    Effect.gen(function* () {
      yield* refuse(1, 7, 8, 20)
      yield* addEvents(...count(20, event))
      yield* start
      yield* settle
      assert.deepStrictEqual(
        yield* log,
        count(20, (n) => n).filter((n) => ![1, 7, 8, 20].includes(n))
      )
      assert.deepStrictEqual(
        (yield* storedEvents).filter((row) => row.attempts === 1).map((row) => Number(row.id)),
        [1, 7, 8, 20]
      )
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("tries a refused row after 30 s, doubling, parks it at the fifth refusal and never again", () =>
    Effect.gen(function* () {
      const at: Array<number> = []
      yield* (yield* broker).answerWith((batch) =>
        Effect.clockWith((clock) => {
          at.push(clock.currentTimeMillisUnsafe() / 1000)
          return Effect.succeed(batch.map(() => rejected))
        })
      )
      yield* addEvents(event(1))
      yield* start
      yield* TestClock.adjust("20 minutes")
      assert.deepStrictEqual(at, [0, 30, 90, 210, 450])
      const row = yield* rowOf(1)
      assert.deepInclude(row, { attempts: 5, lastError: rejected.reason, deliveredAt: null })
      assert.strictEqual(row?.parkedAt, 450_000_000n)
      assert.strictEqual(yield* metric('messenger_outbox_failures_total{kind="rejected"}'), 5)
      assert.strictEqual(yield* metric("messenger_outbox_parked"), 1)
      assert.strictEqual(yield* metric("messenger_outbox_pending"), 0)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("never waits longer than an hour between two attempts", () =>
    Effect.gen(function* () {
      yield* refuse(1)
      yield* addEvents({ ...event(1), attempts: 3_000 - 2 })
      yield* start
      yield* settle
      assert.strictEqual((yield* rowOf(1))?.parkedAt, 0n, "above the limit already")
      yield* addEvents({ ...event(1), attempts: 3 })
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* rowOf(1))?.nextAttemptAt, 241_000_000n)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("says each refusal at ERROR, with all that leads to the row", () =>
    Effect.gen(function* () {
      yield* refuse(2)
      yield* addEvents(...count(3, event))
      yield* start
      yield* TestClock.adjust("20 minutes")
      assert.deepStrictEqual(yield* said, [
        ...Array.from({ length: 4 }, () => "Error outbox row refused"),
        "Error outbox row parked"
      ])
      const { lines } = yield* Shown
      const [first, , , , last] = lines.filter(({ level }) => level === "Error")
      const row = {
        outboxId: "2",
        messageId: event(2).messageId,
        key: keyOf(2),
        correlationId: correlationOf(2),
        reason: rejected.reason
      }
      assert.deepStrictEqual(first?.annotations, { ...row, attempts: 1, nextAttemptAt: "1970-01-01T00:00:30.000Z" })
      assert.deepStrictEqual(last?.annotations, { ...row, attempts: 5 })
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("holds later rows of a refused row's key until it is parked, and no other key (park)", () =>
    Effect.gen(function* () {
      yield* refuse(2)
      yield* addEvents(event(1, { key: 1 }), event(2, { key: 1 }), event(3, { key: 1 }), event(4), event(5, { key: 1 }))
      yield* start
      yield* TestClock.adjust("440 seconds")
      assert.deepStrictEqual(yield* log, [1, 4])
      yield* TestClock.adjust("11 seconds")
      assert.deepStrictEqual(yield* log, [1, 4, 3, 5])
    }).pipe(Effect.provide(fresh("park")))
  )

  it.effect("holds later rows of a parked row's key for good where that is the policy (block)", () =>
    Effect.gen(function* () {
      yield* refuse(2)
      yield* addEvents(event(1, { key: 1 }), event(2, { key: 1 }), event(3, { key: 1 }), event(4))
      yield* start
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(yield* log, [1, 4])
      assert.isNotNull((yield* rowOf(2))?.parkedAt)
    }).pipe(Effect.provide(fresh("block")))
  )

  it.effect("publishes a refused row, and the later ones of its key, once the broker takes it", () =>
    Effect.gen(function* () {
      yield* refuse(1)
      yield* addEvents(event(1, { key: 1 }), event(2, { key: 1 }))
      yield* start
      yield* settle
      yield* (yield* broker).answerWith(all(acked))
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* log, [1, 2])
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("counts no refusal against a row that was only in the same batch", () =>
    Effect.gen(function* () {
      yield* (yield* broker).answerWith((batch, n) =>
        Effect.succeed(batch.map(() => (n === 0 ? rejected : n === 1 ? acked : unavailable)))
      )
      yield* addEvents(...count(8, event))
      yield* start
      yield* settle
      assert.deepStrictEqual(yield* sent, [
        [1, 2, 3, 4, 5, 6, 7, 8],
        [1, 2, 3, 4],
        [5, 6, 7, 8]
      ])
      assert.deepStrictEqual(yield* log, [1, 2, 3, 4])
      assert.isTrue((yield* storedEvents).every((row) => row.attempts === 0))
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("goes through 500 rows that are all refused without an end to the good ones behind them", () =>
    Effect.gen(function* () {
      yield* (yield* broker).answerWith(refusing((row) => row.id <= 500n))
      yield* addEvents(...count(520, event))
      yield* start
      yield* settle
      assert.deepStrictEqual(
        yield* log,
        count(20, (n) => n, 501)
      )
    }).pipe(Effect.provide(fresh()))
  )
})
