/**
 * The worker's metrics, names exact as dashboards and alerts use them (M). All of them exist at 0 from the first scrape:
 * an alert on a series that is missing until its first event misses that event.
 */
import { Context, Duration, Effect, Layer, Metric } from "effect"
import type { DomainEvent } from "../domain/DomainEvent.ts"
import * as Instant from "../domain/Instant.ts"
import * as Phase from "../domain/Phase.ts"
import { ReaperOptions } from "../services/ReaperOptions.ts"

const name = (suffix: string) => `messenger_conf_reaper_${suffix}`
const counter = (suffix: string, description: string) =>
  Metric.counter(name(suffix), { description, incremental: true })

export const runs = counter("run_total", "Cycles that got the run lock, failed ones included")
const items = counter("items_total", "Sessions closed, by outcome")
export const skipLocked = counter("skip_locked_total", "Due sessions left alone because others had them locked")
export const errors = counter("errors_total", "Poison items, failed phases, refused cycles and defects")
export const lockBusy = counter("lock_busy_total", "Ticks skipped because another instance held the run lock")
export const refused = counter("refused_total", "Cycles refused because of the clock skew")
export const phaseErrors = counter("phase_errors_total", "Failed phases, by phase")
export const activeBacklog = Metric.gauge(name("active_backlog"), {
  description: "Active sessions past their window after the last cycle; 0 on an instance that did not run it"
})
export const poisonItems = Metric.gauge(name("poison_items"), {
  description: "Open sessions whose transition was refused; 0 on an instance that did not run the last cycle"
})
export const clockSkew = Metric.gauge(name("clock_skew_seconds"), {
  description: "AsOf of the last cycle minus the database's clock"
})
export const cycleDuration = Metric.histogram(name("cycle_duration_seconds"), {
  description: "Time of one cycle under the run lock",
  boundaries: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120]
})
const commitDelay = Metric.histogram(name("commit_delay_seconds"), {
  description: "AsOf until the transition was committed, by phase",
  boundaries: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120]
})

// The SLO is "no later than one polling interval after the due moment" (S1, S2), so that is a bucket edge.
const latenessOf = (pollingInterval: Duration.Duration) =>
  Metric.histogram(name("lateness_seconds"), {
    description: "EndedAt minus the moment the session became due, by phase",
    boundaries: [0.1, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 5, 10, 30, 120].map(
      (factor) => Duration.toSeconds(pollingInterval) * factor
    )
  })

/** Observes one closed session; `committedAt` is when its transaction was answered. */
export class ClosingMetrics extends Context.Service<
  ClosingMetrics,
  {
    readonly observe: (event: DomainEvent, outcome: Phase.Outcome, committedAt: Instant.Instant) => Effect.Effect<void>
  }
>()("conference-room-reaper/ClosingMetrics") {}

/** Touches every metric and every label value. */
export const layer = Layer.effect(
  ClosingMetrics,
  Effect.gen(function* () {
    const options = yield* ReaperOptions
    const lateness = latenessOf(options.pollingInterval)
    for (const metric of [runs, skipLocked, errors, lockBusy, refused]) yield* Metric.update(metric, 0)
    for (const metric of [activeBacklog, poisonItems, clockSkew]) yield* Metric.update(metric, 0)
    yield* Metric.value(cycleDuration)
    for (const phase of Phase.all) {
      yield* Metric.update(Metric.withAttributes(items, { outcome: phase.outcome }), 0)
      yield* Metric.update(Metric.withAttributes(phaseErrors, { phase: phase.name }), 0)
      yield* Metric.value(Metric.withAttributes(lateness, { phase: phase.name }))
      yield* Metric.value(Metric.withAttributes(commitDelay, { phase: phase.name }))
    }
    return ClosingMetrics.of({
      observe: Effect.fnUntraced(function* (event, outcome, committedAt) {
        const { phase, asOf, dueAt } = event.facts
        yield* Metric.update(Metric.withAttributes(items, { outcome }), 1)
        yield* Metric.update(Metric.withAttributes(lateness, { phase }), Instant.secondsBetween(dueAt, asOf))
        // A system clock that was set back meanwhile must not make it negative.
        const delay = Math.max(0, Instant.secondsBetween(asOf, committedAt))
        yield* Metric.update(Metric.withAttributes(commitDelay, { phase }), delay)
      })
    })
  })
)
