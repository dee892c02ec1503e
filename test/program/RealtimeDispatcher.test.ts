/** Pushes on their way to the hub (X2): persist, then push; in order per chat, at least once, and not for ever. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Option, Schema } from "effect"
import { TestClock } from "effect/testing"
import * as Instant from "../../src/domain/Instant.ts"
import * as RealtimeDispatcher from "../../src/program/RealtimeDispatcher.ts"
import { DeliveryHealth } from "../../src/services/DeliveryHealth.ts"
import { unavailable as storeUnavailable } from "../fakes/Faults.ts"
import { away, busy, HubPublisherControl, refusal } from "../fakes/MemoryHubPublisher.ts"
import { RealtimeLockControl } from "../fakes/MemoryRunLock.ts"
import { WakeUpsControl } from "../fakes/MemoryWakeUps.ts"
import {
  addSignals,
  chatOf,
  correlationOf,
  count,
  faults,
  fresh,
  ids,
  metric,
  passTimeUntil,
  Shown,
  said,
  settle,
  signal,
  storedSignals
} from "../support/Deliveries.ts"

const start = Effect.forkChild(RealtimeDispatcher.run, { startImmediately: true })
const hub = HubPublisherControl
const taken = Effect.flatMap(hub, ({ taken }) => Effect.map(taken, ids))
const tried = Effect.flatMap(hub, ({ tried }) => Effect.map(tried, ids))
const numbers = (n: number, from = 1) => count(n, (i) => i, from)

describe("RealtimeDispatcher", () => {
  it.effect("pushes what waits at once and marks each push when it was taken (X2)", () =>
    Effect.gen(function* () {
      yield* addSignals(...count(250, (n) => signal(n, n % 9)))
      yield* start
      yield* settle
      assert.sameMembers([...(yield* taken)], [...numbers(250)])
      const [first] = yield* (yield* hub).taken
      assert.deepInclude(first, { chatId: chatOf(Number(first?.id) % 9), signal: "Ended", headers: signal(1).headers })
      assert.isTrue((yield* storedSignals).every((row) => row.deliveredAt === 0n))
      assert.strictEqual(yield* metric("messenger_realtime_published_total"), 250)
      assert.strictEqual(yield* metric("messenger_realtime_publish_latency_seconds"), 250)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("goes on with the other chats when the hub cannot take some, which wait by themselves (X2)", () =>
    Effect.gen(function* () {
      yield* addSignals(...count(200, (n) => signal(n)))
      yield* (yield* hub).answerWith((row) => (row.id <= 4n ? Effect.fail(busy) : Effect.void))
      yield* start
      yield* settle
      assert.sameMembers([...(yield* taken)], [...numbers(196, 5)])
      const waiting = (yield* storedSignals).filter((row) => row.deliveredAt === null)
      assert.deepStrictEqual(
        waiting.map((row) => [row.attempts, row.parkedAt, row.nextAttemptAt]),
        count(4, () => [0, null, 30_000_000n])
      )
      yield* (yield* hub).answerWith(() => Effect.void)
      yield* TestClock.adjust("31 seconds")
      yield* settle
      assert.lengthOf(yield* taken, 200)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("takes a hub that takes nobody's push for one that is away, after eight chats (X2)", () =>
    Effect.gen(function* () {
      yield* addSignals(...count(50, (n) => signal(n)))
      yield* (yield* hub).answerWith(() => Effect.fail(busy))
      yield* start
      yield* settle
      assert.isAtMost((yield* tried).length, 8 + 3, "those that were under way by then included")
      assert.isTrue((yield* storedSignals).every((row) => row.attempts === 0 && row.nextAttemptAt === null))
      assert.deepInclude((yield* (yield* DeliveryHealth).check).realtime, { status: "degraded" })
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("pushes four chats side by side and one row at a time in each, in order (X2)", () =>
    Effect.gen(function* () {
      const open = new Set<string>()
      yield* (yield* hub).answerWith((row) =>
        Effect.gen(function* () {
          assert.isFalse(open.has(row.chatId), "two pushes of one chat at once")
          open.add(row.chatId)
          yield* Effect.sleep("100 millis")
          open.delete(row.chatId)
        })
      )
      yield* addSignals(...count(80, (n) => signal(n, n % 8)))
      yield* start
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual((yield* taken).length, 80)
      assert.strictEqual(yield* (yield* hub).atOnce, 4)
      for (const rows of Map.groupBy(yield* (yield* hub).taken, (row) => row.chatId).values()) {
        assert.deepStrictEqual(
          ids(rows),
          ids(rows).toSorted((a, b) => a - b)
        )
      }
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("wakes up for a new row before its poll; a lost wake-up costs one poll (X2)", () =>
    Effect.gen(function* () {
      yield* start
      yield* TestClock.adjust("10 millis")
      yield* addSignals(signal(1))
      yield* (yield* WakeUpsControl).signalSignals
      yield* settle
      assert.deepStrictEqual(yield* taken, [1])
      yield* addSignals(signal(2))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* taken, [1, 2])
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("burns no attempts while the hub is away, says it twice, and pushes in order afterwards (X2)", () =>
    Effect.gen(function* () {
      yield* (yield* hub).answerWith(() => Effect.fail(away))
      yield* addSignals(signal(1, 1), signal(2, 1), signal(3, 2))
      yield* start
      yield* TestClock.adjust("1 hour")
      assert.isAtMost((yield* tried).length, 4 * 160, "the pauses grow, and each try is one push a chat at most")
      assert.isTrue((yield* storedSignals).every((row) => row.attempts === 0 && row.deliveredAt === null))
      const health = Effect.flatMap(DeliveryHealth, ({ check }) => Effect.map(check, ({ realtime }) => realtime))
      assert.deepStrictEqual(yield* health, { status: "degraded", reason: away.reason })
      yield* (yield* hub).answerWith(() => Effect.void)
      yield* TestClock.adjust("36 seconds")
      assert.deepStrictEqual([...(yield* taken)].toSorted(), [1, 2, 3])
      assert.deepStrictEqual(yield* said, ["Warn realtime delivery is held up", "Info realtime delivery goes on"])
      assert.deepStrictEqual(yield* health, { status: "up" })
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("asks a hub that is away for no other chat of the batch (X2)", () =>
    Effect.gen(function* () {
      yield* (yield* hub).answerWith(() => Effect.andThen(Effect.sleep("10 millis"), Effect.fail(away)))
      yield* addSignals(...count(50, signal))
      yield* start
      yield* TestClock.adjust("100 millis")
      assert.strictEqual((yield* tried).length, 4)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("lets later rows of a chat wait for a refused one, and no other chat (X2)", () =>
    Effect.gen(function* () {
      yield* (yield* hub).answerWith((row) => (row.id === 1n ? Effect.fail(refusal) : Effect.void))
      yield* addSignals(signal(1, 1), signal(2, 1), signal(3, 2))
      yield* start
      yield* TestClock.adjust("449 seconds")
      assert.deepStrictEqual(yield* taken, [3])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* taken, [3, 2])
      const [row] = yield* storedSignals
      assert.deepInclude(row, { attempts: 5, lastError: refusal.reason, deliveredAt: null })
      assert.isNotNull(row?.parkedAt)
      assert.strictEqual(yield* metric('messenger_realtime_failures_total{kind="rejected"}'), 5)
      assert.strictEqual((yield* said).at(-1), "Error realtime row parked")
      const line = (yield* Shown).lines.find(({ level }) => level === "Error")
      assert.deepInclude(line?.annotations, { outboxId: "1", chatId: chatOf(1), correlationId: correlationOf(1) })
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("expires what has outlived its use, counts it and does not push it (X2)", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Duration.toMillis(Duration.days(3)))
      const late = (n: number) => signal(n)
      const inTime = { ...signal(2001), createdAt: Instant.fromMillis(Duration.toMillis(Duration.days(2))) }
      yield* addSignals(...count(2000, late), inTime)
      yield* start
      yield* settle
      assert.deepStrictEqual(yield* tried, [2001])
      assert.strictEqual(yield* metric("messenger_realtime_expired_total"), 2000)
      assert.strictEqual((yield* storedSignals).filter((row) => row.expiredAt !== null).length, 2000)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("expires while the hub stays away too, so that its return brings no flood of old pushes (X2)", () =>
    Effect.gen(function* () {
      yield* (yield* hub).answerWith(() => Effect.fail(away))
      yield* addSignals(...count(20, signal))
      yield* start
      yield* TestClock.adjust("3 minutes")
      yield* (yield* hub).answerWith(() => Effect.void)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* taken, [])
      assert.strictEqual(yield* metric("messenger_realtime_expired_total"), 20)
    }).pipe(Effect.provide(fresh("park", { realtimeMaxAge: Duration.minutes(2) })))
  )

  it.effect("removes pushed and expired rows after their retention, never waiting or parked ones", () =>
    Effect.gen(function* () {
      yield* (yield* hub).answerWith(() => Effect.fail(away))
      const long = Instant.minus(signal(1).createdAt, Duration.days(7))
      const past = Instant.minus(long, Duration.seconds(1))
      yield* addSignals(
        { ...signal(1), deliveredAt: past },
        { ...signal(2), expiredAt: past },
        { ...signal(3), parkedAt: past },
        signal(4),
        { ...signal(5), deliveredAt: long }
      )
      yield* start
      yield* settle
      assert.deepStrictEqual(ids(yield* storedSignals), [3, 4, 5])
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("lets running pushes settle when it is stopped, and marks them (X2)", () =>
    Effect.gen(function* () {
      const answered = yield* Deferred.make<void>()
      yield* (yield* hub).answerWith(() => Deferred.await(answered))
      yield* addSignals(...count(10, signal))
      const fiber = yield* start
      yield* settle
      const stopping = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
      yield* settle
      assert.isTrue(yield* (yield* RealtimeLockControl).isHeld)
      yield* Deferred.succeed(answered, undefined)
      yield* Fiber.join(stopping)
      assert.sameMembers([...(yield* tried)], [1, 2, 3, 4])
      assert.strictEqual((yield* storedSignals).filter((row) => row.deliveredAt !== null).length, 4)
      assert.isFalse(yield* (yield* RealtimeLockControl).isHeld)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("pushes nothing more once its lock is lost (L3)", () =>
    Effect.gen(function* () {
      const lock = yield* RealtimeLockControl
      yield* (yield* hub).answerWith((row) => (row.id === 2n ? lock.lose : Effect.void))
      yield* addSignals(...count(5, (n) => signal(n, 1)))
      yield* start
      yield* settle
      assert.deepStrictEqual(yield* tried, [1, 2])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* taken, [1, 2, 3, 4, 5])
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("pushes once with two instances on one table (X2)", () =>
    Effect.gen(function* () {
      yield* (yield* hub).answerWith(() => Effect.sleep("300 millis"))
      yield* addSignals(...count(40, signal))
      yield* start
      yield* start
      yield* TestClock.adjust("10 seconds")
      assert.sameMembers([...(yield* tried)], [...numbers(40)])
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("goes on after a bug of the hub's layer and after a database that takes no mark", () =>
    Effect.gen(function* () {
      yield* (yield* faults).before("markDelivered", Effect.fail(storeUnavailable("markDelivered")))
      yield* (yield* hub).answerWith((_, n) => (n === 0 ? Effect.die("a bug") : Effect.void))
      yield* addSignals(signal(1))
      yield* start
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* tried, [1, 1, 1])
      assert.isTrue((yield* storedSignals).every((row) => row.deliveredAt !== null))
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("continues the trace of the room that wrote a push (M)", () =>
    Effect.gen(function* () {
      yield* addSignals(signal(1))
      yield* start
      yield* settle
      const span = (yield* Shown).spans.find(({ name }) => name === "realtime.push")
      const [, traceId, parentId] = signal(1).headers.traceparent?.split("-") ?? []
      assert.deepStrictEqual(
        [span?.traceId, Option.getOrUndefined(span?.parent ?? Option.none())?.spanId, span?.kind],
        [traceId, parentId, "producer"]
      )
      assert.strictEqual(span?.attributes.get("correlationId"), correlationOf(1))
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("shows and removes without a hub, and pushes nothing", () =>
    Effect.gen(function* () {
      yield* addSignals(signal(1))
      yield* Effect.forkChild(RealtimeDispatcher.runWithoutHub, { startImmediately: true })
      yield* TestClock.adjust("61 seconds")
      assert.strictEqual(yield* metric("messenger_realtime_pending"), 1)
      assert.strictEqual(yield* metric("messenger_realtime_oldest_pending_age_seconds"), 61)
      assert.deepStrictEqual(yield* tried, [])
    }).pipe(Effect.provide(fresh()))
  )

  const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))
  const Story = Schema.Struct({
    chats: Schema.Array(between(0, 4)).check(Schema.isMinLength(1), Schema.isMaxLength(25)),
    answers: Schema.Array(Schema.Literals(["taken", "away", "refused", "lost"])).check(Schema.isMaxLength(15))
  })

  it.effect.prop(
    "keeps the order of each chat and loses nothing, whatever the hub answers (X2)",
    [Story],
    ([{ chats, answers }]) =>
      Effect.gen(function* () {
        const reached: Array<readonly [string, number]> = []
        // More of them to one row would take it past the end of the story.
        let refusals = 0
        yield* (yield* hub).answerWith((row, n) => {
          const answer = answers[n] ?? "taken"
          if (answer === "taken" || answer === "lost") reached.push([row.chatId, Number(row.id)])
          if (answer === "refused" && ++refusals <= 4) return Effect.fail(refusal)
          return answer === "taken" ? Effect.void : Effect.fail(away)
        })
        yield* addSignals(...chats.map((chat, i) => signal(i + 1, chat)))
        yield* start
        const allTaken = Effect.map(storedSignals, (rows) => rows.every((row) => row.deliveredAt !== null))
        yield* passTimeUntil(allTaken, "15 minutes")
        assert.isTrue(yield* allTaken)
        for (const seen of Map.groupBy(reached, ([chat]) => chat).values()) {
          const order = seen.map(([, id]) => id)
          assert.deepStrictEqual(
            order,
            order.toSorted((a, b) => a - b)
          )
        }
      }).pipe(Effect.provide(fresh("park", { maxAttempts: 100 }))),
    { arbitrary: { runs: 40 } }
  )
})
