/**
 * What follows a cycle: gauges, history, pruning and the closing log line. All of it is best effort and bounded in time:
 * none of it can fail a cycle or hold up the next tick.
 */
import { Effect, Exit, Metric } from "effect"
import type { CycleSummary } from "../domain/CycleSummary.ts"
import * as Instant from "../domain/Instant.ts"
import { ConferenceRepository } from "../services/ConferenceRepository.ts"
import { ReaperJournal } from "../services/ReaperJournal.ts"
import { ReaperOptions } from "../services/ReaperOptions.ts"
import { Store } from "../services/Store.ts"
import * as Metrics from "./Metrics.ts"

const limit = "5 seconds"

const setBacklog = (overdue: number, poison: number) =>
  Effect.andThen(Metric.update(Metrics.activeBacklog, overdue), Metric.update(Metrics.poisonItems, poison))

const countBacklog = Effect.fnUntraced(function* (summary: CycleSummary) {
  const repository = yield* ConferenceRepository
  const { overdue, poison } = yield* repository.backlog(summary.asOf, yield* ReaperOptions)
  yield* setBacklog(overdue, poison)
})

const keepHistory = Effect.fnUntraced(function* (summary: CycleSummary) {
  const journal = yield* ReaperJournal
  const options = yield* ReaperOptions
  yield* journal.recordRun(summary, options.instance)
  // By a clock that runs ahead all evidence would be past its time (L7).
  if (summary.outcome !== "refused") yield* journal.prune(Instant.minus(summary.asOf, options.closingsRetention))
})

const bestEffort =
  (what: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    effect.pipe(
      Effect.timeout(limit),
      Effect.catchCause((cause) => Effect.logWarning(`${what} was not possible`, cause)),
      Effect.asVoid
    )

const logCompleted = (summary: CycleSummary) => {
  const log =
    summary.outcome === "completed"
      ? Effect.logInfo("cycle completed")
      : summary.outcome === "lock-busy"
        ? Effect.logInfo("tick skipped, another instance holds the run lock")
        : Effect.logError("cycle not completed")
  const { jobRunId: _, asOf, error, ...rest } = summary
  const fields = { ...rest, asOf: Instant.format(asOf), ...(error === null ? {} : { error }) }
  return log.pipe(Effect.annotateLogs(fields))
}

// An old value would keep an alert alive: another instance counts now, or nobody can.
const forgetBacklog = setBacklog(0, 0)

const keepAccount = Effect.fnUntraced(function* (summary: CycleSummary) {
  const store = yield* Store
  // With the database away each of the following would only wait for its limit.
  if (summary.outcome === "failed" && Exit.isFailure(yield* Effect.exit(store.ping))) return yield* forgetBacklog
  // What a refused clock calls overdue is not (L7).
  if (summary.outcome === "refused") yield* forgetBacklog
  else
    yield* countBacklog(summary).pipe(
      Effect.onError(() => forgetBacklog),
      bestEffort("counting the backlog")
    )
  yield* bestEffort("keeping the run's history")(keepHistory(summary))
})

export const afterCycle = Effect.fnUntraced(function* (summary: CycleSummary) {
  if (summary.outcome === "lock-busy") yield* Effect.andThen(Metric.update(Metrics.lockBusy, 1), forgetBacklog)
  else yield* keepAccount(summary)
  yield* logCompleted(summary)
})
