/** What delivery shows and clears away (M): metrics, traces, retention. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Option, type Tracer } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { TestClock } from "effect/testing"
import * as Instant from "../../src/domain/Instant.ts"
import * as OutboxDispatcher from "../../src/program/OutboxDispatcher.ts"
import { DeliveryHealth } from "../../src/services/DeliveryHealth.ts"
import { defaults } from "../../src/services/DeliveryOptions.ts"
import { acked } from "../../src/services/EventPublisher.ts"
import { unavailable as storeUnavailable } from "../fakes/Faults.ts"
import { all, EventPublisherControl, refusing, unavailable } from "../fakes/MemoryEventPublisher.ts"
import {
  addEvents,
  correlationOf,
  count,
  event,
  faults,
  fresh,
  ids,
  metric,
  Shown,
  settle,
  storedEvents
} from "../support/Deliveries.ts"

const start = Effect.forkChild(OutboxDispatcher.run, { startImmediately: true })
const broker = EventPublisherControl
const gauges = Effect.forEach(["pending", "oldest_pending_age_seconds", "parked"], (name) =>
  metric(`messenger_outbox_${name}`)
)

const day = Duration.days(1)
const now = Instant.fromMillis(Duration.toMillis(Duration.times(day, 30)))
const daysAgo = (days: number) => Instant.minus(now, Duration.times(day, days))

const expected = [
  ...["outbox", "realtime"].flatMap((name) => [
    ...["published_total", "pending", "oldest_pending_age_seconds", "parked"].map((suffix) => `${name}_${suffix}`),
    ...["unavailable", "misconfigured", "rejected"].map((kind) => `${name}_failures_total{kind="${kind}"}`),
    ...["sum", "count"].map((suffix) => `${name}_publish_latency_seconds_${suffix}`)
  ]),
  "realtime_expired_total"
].map((name) => `messenger_${name}`)

describe("OutboxDispatcher's upkeep", () => {
  it.effect("shows every metric at 0 from the first scrape, under exactly these names (M)", () =>
    Effect.gen(function* () {
      const lines = (yield* PrometheusMetrics.format()).split("\n")
      const samples = lines.filter((line) => line !== "" && !line.startsWith("#") && !line.includes("_bucket"))
      assert.sameMembers(
        samples,
        expected.map((name) => `${name} 0`)
      )
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("keeps its gauges fresh while the broker is away, and while a send does not end (M)", () =>
    Effect.gen(function* () {
      yield* (yield* broker).answerWith(all(unavailable))
      yield* addEvents(event(1), event(2), { ...event(3), parkedAt: event(3).createdAt })
      yield* start
      yield* TestClock.adjust("100 seconds")
      assert.deepStrictEqual(yield* gauges, [2, 100, 1])
      const answered = yield* Deferred.make<void>()
      yield* (yield* broker).answerWith((batch) =>
        Effect.as(
          Deferred.await(answered),
          batch.map(() => acked)
        )
      )
      yield* TestClock.adjust("100 seconds")
      assert.deepStrictEqual(yield* gauges, [2, 200, 1])
      yield* Deferred.succeed(answered, undefined)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* gauges, [0, 0, 1])
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("measures from the cycle that wrote a row to its ack, never below zero (M)", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("7 seconds")
      yield* addEvents(event(1), { ...event(2), createdAt: Instant.fromMillis(60_000) })
      yield* start
      yield* settle
      const text = yield* PrometheusMetrics.format()
      assert.include(text, "messenger_outbox_publish_latency_seconds_sum 7\n")
      assert.include(text, 'messenger_outbox_publish_latency_seconds_bucket{le="0.01"} 1\n')
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("removes published rows after their retention, in small batches, and no others", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Instant.toMillis(now))
      yield* (yield* broker).answerWith(all(unavailable))
      const old = (n: number) => ({ ...event(n), createdAt: daysAgo(20), deliveredAt: daysAgo(8) })
      const parked = (n: number) => ({ ...event(n), createdAt: daysAgo(20), parkedAt: daysAgo(20), attempts: 5 })
      const waiting = (n: number) => ({ ...event(n), createdAt: daysAgo(20) })
      const recent = { ...event(5000), createdAt: daysAgo(20), deliveredAt: daysAgo(6.99) }
      let statements = 0
      const counted = Effect.sync(() => {
        statements += 1
      })
      yield* (yield* faults).before("pruneDelivered", counted, Infinity)
      yield* addEvents(...count(2500, old), ...count(3, parked, 3000), ...count(3, waiting, 4000), recent)
      yield* start
      yield* settle
      assert.deepStrictEqual(ids(yield* storedEvents), [3000, 3001, 3002, 4000, 4001, 4002, 5000])
      assert.strictEqual(statements, 3)
      yield* TestClock.adjust("15 minutes")
      assert.deepStrictEqual(ids(yield* storedEvents), [3000, 3001, 3002, 4000, 4001, 4002])
      assert.strictEqual(statements, 18, "once a minute")
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("goes on showing and removing after failures and bugs of the database", () =>
    Effect.gen(function* () {
      const database = yield* faults
      yield* database.before("outboxStatus", Effect.die("a bug"), 2)
      yield* database.before("pruneDelivered", Effect.fail(storeUnavailable("pruneDelivered")))
      yield* (yield* broker).answerWith(all(unavailable))
      yield* addEvents(event(1), { ...event(2), deliveredAt: Instant.minus(event(2).createdAt, defaults.retention) })
      yield* start
      yield* TestClock.adjust("61 seconds")
      assert.deepStrictEqual(yield* gauges, [1, 61, 0])
      assert.deepStrictEqual(ids(yield* storedEvents), [1])
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("shows and removes without a broker, publishes nothing, and says that none is configured", () =>
    Effect.gen(function* () {
      yield* addEvents(event(1), { ...event(2), deliveredAt: Instant.minus(event(2).createdAt, defaults.retention) })
      yield* Effect.forkChild(OutboxDispatcher.runWithoutBroker, { startImmediately: true })
      yield* TestClock.adjust("61 seconds")
      assert.deepStrictEqual(yield* gauges, [1, 61, 0])
      assert.deepStrictEqual(ids(yield* storedEvents), [1])
      assert.deepStrictEqual(yield* (yield* broker).sent, [])
      const { outbox } = yield* (yield* DeliveryHealth).check
      assert.deepStrictEqual(outbox, { status: "not-configured" })
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("continues the trace of the room that wrote a row, linked to the send that carries it (M)", () =>
    Effect.gen(function* () {
      yield* (yield* broker).answerWith(refusing((row) => row.id === 2n))
      yield* addEvents(event(1), event(2), { ...event(3), headers: { traceparent: "nonsense" } })
      yield* start
      yield* settle
      const { spans } = yield* Shown
      const published = spans.filter((span) => span.name === "outbox.publish")
      const first = published.find((span) => span.attributes.get("outboxId") === "1")
      assert.strictEqual(first?.kind, "producer")
      const [, traceId, parentId] = event(1).headers.traceparent?.split("-") ?? []
      assert.deepStrictEqual(
        [first?.traceId, Option.getOrUndefined(first?.parent ?? Option.none())?.spanId],
        [traceId, parentId]
      )
      const sends = spans.filter((span) => span.name === "outbox.send").map((span) => span.spanId)
      assert.includeMembers(sends, first?.links.map(({ span }) => span.spanId) ?? [])
      assert.strictEqual(first?.attributes.get("correlationId"), correlationOf(1))
      const outcomes = published.map((span) => [span.attributes.get("outboxId"), outcomeOf(span)].join(" "))
      assert.includeMembers(outcomes, ["1 acked Success", "2 rejected Failure", "3 acked Success"])
      const third = published.find((span) => span.attributes.get("outboxId") === "3")
      assert.isTrue(third !== undefined && Option.isNone(third.parent))
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("makes no trace of a poll that finds nothing (M)", () =>
    Effect.gen(function* () {
      yield* start
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual((yield* Shown).spans, [])
    }).pipe(Effect.provide(fresh()))
  )
})

const outcomeOf = ({ attributes, status }: Tracer.NativeSpan) =>
  `${attributes.get("outcome")} ${status._tag === "Ended" ? status.exit._tag : "open"}`
