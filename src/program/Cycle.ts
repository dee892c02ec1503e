/**
 * One tick (R, L): the run lock, AsOf, the clock check, then the three phases in order, each a transaction of its own. A
 * phase that fails is rolled back alone; while the database answers, the others still have their turn (T6).
 */
import { Cause, Clock, Duration, Effect, Exit, Metric, Option, Ref } from "effect"
import { v4 as uuidv4 } from "uuid"
import { type ConferenceId, JobRunId } from "../domain/ConferenceSession.ts"
import * as CycleSummary from "../domain/CycleSummary.ts"
import * as Instant from "../domain/Instant.ts"
import * as Phase from "../domain/Phase.ts"
import { CycleClock } from "../services/CycleClock.ts"
import { ReaperOptions } from "../services/ReaperOptions.ts"
import { type HeldLock, RunLock } from "../services/RunLock.ts"
import { Store } from "../services/Store.ts"
import * as AfterCommit from "./AfterCommit.ts"
import { afterCycle } from "./AfterCycle.ts"
import * as Batch from "./Batch.ts"
import * as Metrics from "./Metrics.ts"

/** How a cycle ended, and why when it did not complete. */
interface Ending {
  readonly outcome: CycleSummary.CycleOutcome
  readonly error: string | null
}

const completed: Ending = { outcome: "completed", error: null }

interface Run {
  readonly jobRunId: JobRunId
  readonly asOf: Instant.Instant
  readonly lock: HeldLock
  readonly startedAt: bigint
  readonly counts: Ref.Ref<CycleSummary.Counts>
  readonly refused: Ref.Ref<ReadonlyArray<ConferenceId>>
}

const describe = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

/** Logged once with its cause, and counted; the caller decides what goes on. */
const phaseFailed = (phase: Phase.Phase, cause: Cause.Cause<unknown>) =>
  Metric.update(Metrics.errors, 1).pipe(
    Effect.andThen(Metric.update(Metric.withAttributes(Metrics.phaseErrors, { phase: phase.name }), 1)),
    Effect.andThen(Effect.logError("phase failed", cause)),
    Effect.annotateLogs({ phase: phase.name })
  )

// What is left after it is for recording poison and for the commit.
const softShare = 0.8

/** The time up to which this phase takes up more: each has its share, so that poison in one cannot starve the next (T5). */
const softDeadlineOf = (phase: Phase.Phase, startedAt: bigint, maxRunDuration: Duration.Duration): bigint => {
  const share = (softShare * (Phase.all.indexOf(phase) + 1)) / Phase.all.length
  return startedAt + BigInt(Math.round(Duration.toMillis(maxRunDuration) * share)) * 1_000_000n
}

/** Runs one phase within what is left of MaxRunDuration; the answer is how the cycle stands after it. */
const runPhase = Effect.fnUntraced(function* (run: Run, phase: Phase.Phase) {
  const options = yield* ReaperOptions
  const elapsed = Duration.nanos((yield* Clock.monotonicTimeNanos) - run.startedAt)
  const left = Duration.subtract(options.maxRunDuration, elapsed)
  const softDeadline = softDeadlineOf(phase, run.startedAt, options.maxRunDuration)
  const refusedEarlier = yield* Ref.get(run.refused)
  const context = { phase, jobRunId: run.jobRunId, asOf: run.asOf, softDeadline, refusedEarlier }
  const batch = Batch.run(context, (result) =>
    Ref.update(run.refused, (before) => [...before, ...result.poisoned.map((item) => item.conferenceId)]).pipe(
      Effect.andThen(AfterCommit.dispatch(phase, run.counts, result))
    )
  ).pipe(
    Effect.tap((result) => AfterCommit.stopFailedRecordings(result)),
    Effect.timeoutOption(left)
  )
  const exit = yield* Effect.exit(Duration.isPositive(left) ? batch : Effect.succeedNone)
  if (Exit.isFailure(exit)) {
    yield* phaseFailed(phase, exit.cause)
    return { outcome: "failed", error: `${phase.name}: ${describe(exit.cause)}` } satisfies Ending
  }
  if (Option.isSome(exit.value)) return completed
  yield* Effect.logWarning("cycle stopped at MaxRunDuration, the remaining phases wait for the next one").pipe(
    Effect.annotateLogs({ phase: phase.name })
  )
  return { outcome: "timed-out", error: `stopped at MaxRunDuration in ${phase.name}` } satisfies Ending
})

/** The later phase's outcome, with the reasons of both. */
const after = (earlier: Ending, later: Ending): Ending =>
  earlier.error === null ? later : { outcome: later.outcome, error: `${earlier.error}; ${later.error}` }

const runPhases = Effect.fnUntraced(function* (run: Run) {
  const store = yield* Store
  let ending: Ending = completed
  for (const phase of Phase.all) {
    const confirmed = yield* Effect.result(run.lock.confirm)
    if (confirmed._tag === "Failure") {
      yield* Effect.logError("cycle stopped before its next batch", Cause.fail(confirmed.failure))
      // A restart of the server fails a phase and takes the lock: one trouble, counted once.
      if (ending.outcome === "failed") return ending
      yield* Metric.update(Metrics.errors, 1)
      return { outcome: "failed", error: confirmed.failure.message } satisfies Ending
    }
    const phaseEnding: Ending = yield* runPhase(run, phase)
    if (phaseEnding.outcome !== "completed") ending = after(ending, phaseEnding)
    if (phaseEnding.outcome === "timed-out") break
    // With the database away every further phase would only fail with the same words.
    if (phaseEnding.outcome === "failed" && Exit.isFailure(yield* Effect.exit(store.ping))) break
  }
  return ending
})

/** L7: a node whose clock runs ahead must not close live rooms. */
const refuseSkewed = Effect.fnUntraced(function* (asOf: Instant.Instant, lock: HeldLock) {
  const options = yield* ReaperOptions
  const skew = Instant.secondsBetween(lock.databaseTime, asOf)
  yield* Metric.update(Metrics.clockSkew, skew)
  const allowed = Duration.toSeconds(options.maxClockSkew)
  if (allowed === 0 || Math.abs(skew) <= allowed) return Option.none<Ending>()
  const direction = skew > 0 ? "ahead of" : "behind"
  const error =
    `this node's clock is ${Math.abs(skew).toFixed(3)} s ${direction} the database's, ${allowed} s are allowed ` +
    "(REAPER_MAX_CLOCK_SKEW): check time synchronisation on both"
  yield* Metric.update(Metrics.refused, 1)
  yield* Metric.update(Metrics.errors, 1)
  yield* Effect.logError("cycle refused").pipe(Effect.annotateLogs({ reason: error, clockSkewSeconds: skew }))
  return Option.some<Ending>({ outcome: "refused", error })
})

const underLock = Effect.fnUntraced(function* (run: Run) {
  const refusal = yield* refuseSkewed(run.asOf, run.lock)
  if (Option.isSome(refusal)) return refusal.value
  yield* Metric.update(Metrics.runs, 1)
  yield* Effect.logInfo("cycle started").pipe(
    Effect.annotateLogs({ jobRunId: run.jobRunId, asOf: Instant.format(run.asOf) })
  )
  const ending = yield* runPhases(run)
  const elapsed = Duration.nanos((yield* Clock.monotonicTimeNanos) - run.startedAt)
  yield* Metric.update(Metrics.cycleDuration, Duration.toSeconds(elapsed))
  return ending
})

const attempt = Effect.fnUntraced(function* (jobRunId: JobRunId, counts: Ref.Ref<CycleSummary.Counts>) {
  const clock = yield* CycleClock
  const runLock = yield* RunLock
  const startedAt = yield* Clock.monotonicTimeNanos
  const tried = yield* Effect.scoped(
    Effect.gen(function* () {
      const lock = yield* runLock.tryAcquire
      // L2: AsOf is read after the lock, so that a holder never works with a time from before it.
      const asOf = yield* clock.asOf
      const ending: Ending = Option.isNone(lock)
        ? { outcome: "lock-busy", error: null }
        : yield* underLock({
            jobRunId,
            asOf,
            lock: lock.value,
            startedAt,
            counts,
            refused: yield* Ref.make<ReadonlyArray<ConferenceId>>([])
          })
      return { asOf, ending }
    })
  ).pipe(
    Effect.catchCause((cause) =>
      Effect.gen(function* () {
        yield* Metric.update(Metrics.errors, 1)
        yield* Effect.logError("cycle failed", cause)
        return { asOf: yield* clock.asOf, ending: { outcome: "failed", error: describe(cause) } satisfies Ending }
      })
    )
  )
  const elapsed = Duration.nanos((yield* Clock.monotonicTimeNanos) - startedAt)
  return CycleSummary.make(
    { jobRunId, asOf: tried.asOf, ...tried.ending, durationMs: Math.round(Duration.toMillis(elapsed)) },
    yield* Ref.get(counts)
  )
})

/** Runs one tick and tells what became of it; it fails with no typed error. Everything it does carries `correlationId`. */
export const run = Effect.gen(function* () {
  const jobRunId = JobRunId.make(uuidv4())
  const counts = yield* Ref.make(CycleSummary.noCounts)
  return yield* attempt(jobRunId, counts).pipe(
    Effect.tap(afterCycle),
    Effect.annotateSpans({ correlationId: jobRunId }),
    // A root of its own: ticks must not hang under one span that never ends.
    Effect.withSpan("reaper.cycle", { root: true, attributes: { correlationId: jobRunId } }),
    Effect.annotateLogs({ correlationId: jobRunId })
  )
})
