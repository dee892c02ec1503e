/** What holds events up (X1): broker, rights, database, bugs. Nothing is lost, nothing ends the loop or fills the log. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import * as OutboxDispatcher from "../../src/program/OutboxDispatcher.ts"
import { DeliveryHealth } from "../../src/services/DeliveryHealth.ts"
import { OutboxLock } from "../../src/services/DispatcherLocks.ts"
import { acked } from "../../src/services/EventPublisher.ts"
import { Heartbeat } from "../../src/services/Heartbeat.ts"
import { LockLost } from "../../src/services/RunLock.ts"
import { unavailable as storeUnavailable } from "../fakes/Faults.ts"
import {
  type Answer,
  all,
  EventPublisherControl,
  misconfigured,
  refusing,
  rejected,
  unavailable
} from "../fakes/MemoryEventPublisher.ts"
import { OutboxLockControl } from "../fakes/MemoryRunLock.ts"
import { WakeUpsControl } from "../fakes/MemoryWakeUps.ts"
import {
  addEvents,
  count,
  event,
  faults,
  fresh,
  ids,
  metric,
  Shown,
  said,
  settle,
  storedEvents
} from "../support/Deliveries.ts"

const start = Effect.forkChild(OutboxDispatcher.run, { startImmediately: true })
const health = Effect.map(
  Effect.flatMap(DeliveryHealth, ({ check }) => check),
  ({ outbox }) => outbox
)
const broker = EventPublisherControl
const log = Effect.flatMap(broker, ({ log }) => Effect.map(log, ids))
const sent = Effect.flatMap(broker, ({ sent }) => Effect.map(sent, (batches) => batches.map(ids)))
const attempts = Effect.map(storedEvents, (rows) => rows.map((row) => row.attempts))

const brokenLogger = Logger.layer([
  Logger.make(() => {
    throw new Error("no space left on device")
  })
])

describe("OutboxDispatcher in trouble", () => {
  it.effect("burns no attempts in a long outage, says it twice, and sends the same rows first after it (X1)", () =>
    Effect.gen(function* () {
      yield* (yield* broker).answerWith(all(unavailable))
      yield* addEvents(event(1), event(2, { key: 1 }))
      yield* start
      yield* TestClock.adjust("1 hour")
      yield* addEvents(event(3, { key: 1 }))
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(yield* attempts, [0, 0, 0])
      assert.deepStrictEqual(yield* health, { status: "degraded", reason: unavailable.reason })
      yield* (yield* broker).answerWith(all(acked))
      yield* TestClock.adjust("36 seconds")
      assert.deepStrictEqual(yield* log, [1, 2, 3])
      assert.deepStrictEqual(yield* said, ["Warn outbox delivery is held up", "Info outbox delivery goes on"])
      const { lines } = yield* Shown
      assert.deepInclude(lines[0]?.annotations, { kind: "unavailable", reason: unavailable.reason })
      assert.deepStrictEqual(yield* health, { status: "up" })
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("tries a broker that is away at growing distance up to half a minute, whatever wakes it up", () =>
    Effect.gen(function* () {
      yield* (yield* broker).answerWith(all(unavailable))
      yield* addEvents(event(1))
      yield* start
      yield* settle
      const wakeUps = yield* WakeUpsControl
      const counts: Array<number> = []
      for (const pause of [400, 200, 1000, 2000, 4000, 8000, 16_000]) {
        yield* wakeUps.signalEvents
        yield* TestClock.adjust(pause)
        counts.push((yield* sent).length)
      }
      assert.strictEqual(counts[0], 1, "the first pause is half a second, give or take a fifth")
      assert.isAbove(counts[1] ?? 0, 1)
      assert.isAtMost(counts.at(-1) ?? 0, 8)
      const before = (yield* sent).length
      yield* TestClock.adjust("10 minutes")
      const after = (yield* sent).length - before
      assert.isTrue(after >= 16 && after <= 26, String(after))
      assert.strictEqual(yield* metric('messenger_outbox_failures_total{kind="unavailable"}'), before + after)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect(
    "says at ERROR and once what to do when it is not allowed in, and tries fewer than 20 times in 10 min",
    () =>
      Effect.gen(function* () {
        yield* (yield* broker).answerWith(all(misconfigured))
        yield* addEvents(...count(1000, event))
        yield* start
        yield* TestClock.adjust("10 minutes")
        assert.isBelow((yield* sent).length, 20)
        assert.deepStrictEqual(yield* said, [
          "Error outbox delivery is held up: the broker does not let this client write; mend its rights, the topic or the client's settings"
        ])
        assert.isTrue((yield* attempts).every((n) => n === 0))
        assert.strictEqual(yield* metric('messenger_outbox_failures_total{kind="misconfigured"}'), (yield* sent).length)
        yield* (yield* broker).answerWith(all(acked))
        yield* TestClock.adjust("72 seconds")
        assert.strictEqual((yield* log).length, 1000)
        assert.strictEqual((yield* said).at(-1), "Info outbox delivery goes on")
      }).pipe(Effect.provide(fresh()))
  )

  it.effect("says the worse of two troubles too, once each, however they alternate", () =>
    Effect.gen(function* () {
      yield* (yield* broker).answerWith((batch, n) => all(n % 2 === 0 ? unavailable : misconfigured)(batch, n))
      yield* addEvents(event(1))
      yield* start
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(
        (yield* said).map((line) => line.slice(0, 31)),
        ["Warn outbox delivery is held up", "Error outbox delivery is held u"]
      )
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("starts its pauses anew after a success", () =>
    Effect.gen(function* () {
      yield* (yield* broker).answerWith((batch, n) => all(n === 6 ? acked : unavailable)(batch, n))
      yield* addEvents(event(1))
      yield* start
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* log, [1])
      const before = (yield* sent).length
      yield* addEvents(event(2))
      yield* (yield* WakeUpsControl).signalEvents
      yield* TestClock.adjust("700 millis")
      assert.strictEqual((yield* sent).length, before + 2)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("marks what was acked of a batch at once and sends the rest first the next time (X1)", () =>
    Effect.gen(function* () {
      yield* (yield* broker).answerWith((batch, n) =>
        Effect.succeed(batch.map((row) => (n === 0 && row.key === event(2).messageKey ? unavailable : acked)))
      )
      yield* addEvents(event(1), event(2), event(3), event(4, { key: 2 }))
      yield* start
      yield* settle
      assert.deepStrictEqual(yield* log, [1, 3])
      yield* addEvents(event(5, { key: 2 }))
      yield* TestClock.adjust("600 millis")
      assert.deepStrictEqual(yield* sent, [
        [1, 2, 3, 4],
        [2, 4, 5]
      ])
      assert.deepStrictEqual(yield* said, ["Warn outbox delivery is held up", "Info outbox delivery goes on"])
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("takes a result that is missing for not acked (X1)", () =>
    Effect.gen(function* () {
      yield* (yield* broker).answerWith((batch, n) => Effect.succeed(n === 0 ? [acked] : batch.map(() => acked)))
      yield* addEvents(event(1), event(2))
      yield* start
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* sent, [[1, 2], [2]])
    }).pipe(Effect.provide(fresh()))
  )

  for (const [what, answer] of [
    ["idle", all(acked)],
    ["held up", all(misconfigured)]
  ] as const) {
    it.effect(`shows that its loop turns while it is ${what}`, () =>
      Effect.gen(function* () {
        let silentSince = 0
        let longestSilence = 0
        const beat = Effect.map(
          Effect.clockWith((clock) => clock.currentTimeMillis),
          (now) => {
            longestSilence = Math.max(longestSilence, now - silentSince)
            silentSince = now
          }
        )
        yield* (yield* broker).answerWith(answer)
        yield* addEvents(event(1))
        yield* start.pipe(Effect.provideService(Heartbeat, beat))
        yield* TestClock.adjust("10 minutes")
        yield* beat
        assert.isAtMost(longestSilence, 2000)
      }).pipe(Effect.provide(fresh()))
    )
  }

  const bugs: ReadonlyArray<readonly [string, Answer]> = [
    ["a defect", () => Effect.die(new Error("a bug of the publisher"))],
    ["a thrown error", () => JSON.parse("{")],
    ["an interruption from inside", () => Effect.interrupt]
  ]
  for (const [what, bug] of bugs) {
    it.effect(`goes on after ${what} of the publisher, marks nothing, frees the lock`, () =>
      Effect.gen(function* () {
        yield* (yield* broker).answerWith((batch, n) =>
          n < 3 ? bug(batch, n) : Effect.succeed(batch.map(() => acked))
        )
        yield* addEvents(event(1))
        yield* start
        yield* settle
        assert.isFalse(yield* (yield* OutboxLockControl).isHeld)
        assert.deepStrictEqual(
          (yield* storedEvents).map((row) => row.deliveredAt),
          [null]
        )
        yield* TestClock.adjust("5 seconds")
        assert.deepStrictEqual(yield* log, [1])
        assert.strictEqual((yield* said).filter((line) => line === "Error outbox delivery failed").length, 3)
      }).pipe(Effect.provide(fresh()))
    )
  }

  it.effect("publishes and marks while the logger throws", () =>
    Effect.gen(function* () {
      yield* (yield* broker).answerWith((batch, n) =>
        (n < 2 ? all(unavailable) : refusing((row) => row.id === 2n))(batch, n)
      )
      yield* addEvents(event(1), event(2), event(3))
      yield* start
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* log, [1, 3])
      assert.deepStrictEqual(yield* attempts, [0, 1, 0])
      assert.deepStrictEqual(
        (yield* storedEvents).map((row) => row.deliveredAt === null),
        [false, true, false]
      )
    }).pipe(Effect.provide(Layer.provideMerge(brokenLogger, fresh())))
  )

  for (const operation of ["claimPending", "lock", "confirm"] as const) {
    it.effect(`says once that the database fails it (${operation}), backs off and delivers afterwards (T6)`, () =>
      Effect.gen(function* () {
        const database = yield* faults
        yield* database.before(operation, Effect.fail(storeUnavailable(operation)), 8)
        yield* addEvents(event(1))
        yield* start
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(yield* log, [])
        yield* TestClock.adjust("2 minutes")
        assert.deepStrictEqual(yield* log, [1])
        assert.deepStrictEqual(yield* said, ["Warn outbox delivery is held up", "Info outbox delivery goes on"])
        assert.strictEqual(yield* metric('messenger_outbox_failures_total{kind="unavailable"}'), 0)
      }).pipe(Effect.provide(fresh()))
    )
  }

  it.effect("is no receiver's trouble that the database is away: health stays as it was (T6)", () =>
    Effect.gen(function* () {
      yield* (yield* faults).outage
      yield* start
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual(yield* health, { status: "up" })
      assert.deepStrictEqual([...(yield* said)].toSorted(), [
        "Warn outbox delivery is held up",
        "Warn outbox retention is held up",
        "Warn outbox status is held up"
      ])
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("sends again what was acked when the database does not take the mark (X1)", () =>
    Effect.gen(function* () {
      yield* (yield* faults).before("markDelivered", Effect.fail(storeUnavailable("markDelivered")), 2)
      yield* addEvents(event(1))
      yield* start
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* log, [1, 1, 1])
      assert.strictEqual(yield* metric("messenger_outbox_published_total"), 1)
    }).pipe(Effect.provide(fresh()))
  )

  for (const operation of ["claimPending", "markDelivered", "outboxStatus", "pruneDelivered"] as const) {
    it.effect(`does not wait for ever for a database that never answers (${operation}) (T6)`, () =>
      Effect.gen(function* () {
        yield* (yield* faults).before(operation, Effect.never)
        yield* addEvents(event(1), event(2))
        yield* start
        yield* TestClock.adjust("17 seconds")
        assert.deepStrictEqual(yield* log, operation === "markDelivered" ? [1, 2, 1, 2] : [1, 2])
        yield* addEvents({ ...event(3), parkedAt: event(3).createdAt })
        yield* TestClock.adjust("1 second")
        assert.strictEqual(yield* metric("messenger_outbox_parked"), 1)
      }).pipe(Effect.provide(fresh()))
    )
  }

  it.effect("stops before its next send when its lock is lost in mid-session (L3)", () =>
    Effect.gen(function* () {
      const lock = yield* OutboxLockControl
      yield* (yield* broker).answerWith((batch, n) =>
        Effect.as(
          n === 0 ? lock.lose : Effect.void,
          batch.map(() => acked)
        )
      )
      yield* addEvents(...count(600, event))
      yield* start
      yield* settle
      assert.strictEqual((yield* sent).length, 1)
      assert.strictEqual((yield* storedEvents).filter((row) => row.deliveredAt !== null).length, 500, "acked is acked")
      yield* TestClock.adjust("600 millis")
      assert.strictEqual((yield* log).length, 600)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("stops between the halves of a refused batch when its lock is lost (L3)", () =>
    Effect.gen(function* () {
      let confirmed = 0
      const confirm = Effect.suspend(() =>
        ++confirmed > 3 ? Effect.fail(new LockLost({ reason: "its transaction has ended" })) : Effect.void
      )
      const lock = Layer.succeed(OutboxLock, {
        tryAcquire: Effect.succeedSome({ databaseTime: event(1).createdAt, confirm })
      })
      yield* (yield* broker).answerWith(all(rejected))
      yield* addEvents(...count(8, event))
      yield* start.pipe(Effect.provide(lock))
      yield* settle
      assert.deepStrictEqual(yield* sent, [
        [1, 2, 3, 4, 5, 6, 7, 8],
        [1, 2, 3, 4]
      ])
    }).pipe(Effect.provide(fresh()))
  )
})
