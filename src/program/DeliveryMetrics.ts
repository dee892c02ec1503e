/**
 * The metrics of delivery, names exact as dashboards and alerts use them. All of them exist at 0 from the first scrape.
 * The gauges describe the table and not the instance, so every instance may report them.
 */
import { Effect, Layer, Metric } from "effect"
import * as Instant from "../domain/Instant.ts"
import type { DeliveryName } from "../services/DeliveryHealth.ts"
import type { OutboxStatus } from "../services/Outbox.ts"

const failureKinds = ["unavailable", "misconfigured", "rejected"] as const
type FailureKind = (typeof failureKinds)[number]

const make = (delivery: DeliveryName) => {
  const name = (suffix: string) => `messenger_${delivery}_${suffix}`
  const counter = (suffix: string, description: string) =>
    Metric.counter(name(suffix), { description, incremental: true })
  return {
    published: counter("published_total", "Rows that the receiver has taken"),
    failures: counter("failures_total", "Sends that the receiver did not answer or allow, and refused rows, by kind"),
    pending: Metric.gauge(name("pending"), { description: "Rows that wait to be delivered" }),
    oldestPendingAge: Metric.gauge(name("oldest_pending_age_seconds"), {
      description: "Age of the oldest row that waits; 0 when none does"
    }),
    parked: Metric.gauge(name("parked"), { description: "Rows that were refused too often and wait for somebody" }),
    latency: Metric.histogram(name("publish_latency_seconds"), {
      description: "From the cycle that wrote the row to its acknowledgement",
      boundaries: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600]
    })
  }
}

const metrics = { outbox: make("outbox"), realtime: make("realtime") }

const expired = Metric.counter("messenger_realtime_expired_total", {
  description: "Pushes that were not made in time to be of use",
  incremental: true
})

export const countFailure = (name: DeliveryName, kind: FailureKind) =>
  Metric.update(Metric.withAttributes(metrics[name].failures, { kind }), 1)

export const countExpired = (rows: number) => Metric.update(expired, rows)

/** Counts a row that was taken at the instant. A clock that was set back meanwhile must not make the time negative. */
export const countPublished = (name: DeliveryName, createdAt: Instant.Instant, at: Instant.Instant) =>
  Metric.update(metrics[name].published, 1).pipe(
    Effect.andThen(Metric.update(metrics[name].latency, Math.max(0, Instant.secondsBetween(createdAt, at))))
  )

export const showStatus = Effect.fnUntraced(function* (name: DeliveryName, status: OutboxStatus, at: Instant.Instant) {
  const { pending, oldestPendingAge, parked } = metrics[name]
  const age = status.oldestPendingAt === null ? 0 : Instant.secondsBetween(status.oldestPendingAt, at)
  yield* Metric.update(pending, status.pending)
  yield* Metric.update(oldestPendingAge, Math.max(0, age))
  yield* Metric.update(parked, status.parked)
})

/** Touches every metric and every label value. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    yield* Metric.update(expired, 0)
    for (const one of [metrics.outbox, metrics.realtime]) {
      yield* Metric.update(one.published, 0)
      for (const gauge of [one.pending, one.oldestPendingAge, one.parked]) yield* Metric.update(gauge, 0)
      yield* Metric.value(one.latency)
      for (const kind of failureKinds) yield* Metric.update(Metric.withAttributes(one.failures, { kind }), 0)
    }
  })
)
