/**
 * What follows a committed batch (W5): counters, metrics, recorder signals, and one log line for each session that can
 * answer "why was my room closed?" on its own (W7). Nothing here happens for a batch that was rolled back.
 */
import { Effect, Metric, Ref, Result } from "effect"
import * as CycleSummary from "../domain/CycleSummary.ts"
import type { DomainEvent } from "../domain/DomainEvent.ts"
import * as Instant from "../domain/Instant.ts"
import type { Phase } from "../domain/Phase.ts"
import * as StopRequest from "../domain/StopRequest.ts"
import { ConferenceRepository } from "../services/ConferenceRepository.ts"
import { CycleClock } from "../services/CycleClock.ts"
import type { BatchResult } from "./Batch.ts"
import type { Poisoned } from "./DecideBatch.ts"
import * as Metrics from "./Metrics.ts"
import { RecorderSignals } from "./RecorderSignals.ts"

const logReaped = (event: DomainEvent) => {
  const { facts } = event
  // R2 is an alert (W2): a rising rate of rooms that never come up means that admission is broken.
  const log = event._tag === "ConferenceProvisionFailed" ? Effect.logWarning : Effect.logInfo
  return log("conference reaped").pipe(
    Effect.annotateLogs({
      conferenceId: event.conferenceId,
      chatId: event.chatId,
      dealId: event.dealId,
      phase: facts.phase,
      status: event.status,
      endReason: event.endReason,
      ...(event._tag === "ConferenceEnded" ? { durationSeconds: event.durationSeconds } : {}),
      endedAt: Instant.format(facts.asOf),
      dueAt: Instant.format(facts.dueAt),
      lastActivityAt: Instant.format(facts.lastActivityAt),
      createdAt: Instant.format(facts.createdAt),
      startedAt: facts.startedAt === null ? null : Instant.format(facts.startedAt),
      activeParticipantCount: facts.activeParticipantCount,
      windowMillis: facts.windowMillis
    })
  )
}

const logPoisoned = (phase: Phase) => (item: Poisoned) =>
  Effect.logError("item failed").pipe(
    Effect.annotateLogs({
      conferenceId: item.conferenceId,
      phase: phase.name,
      attempts: item.attempts,
      exception: item.error
    })
  )

/** Called once a batch is fixed; short, since it cannot be interrupted. Counting comes first: it cannot fail. */
export const dispatch = Effect.fnUntraced(function* (
  phase: Phase,
  counts: Ref.Ref<CycleSummary.Counts>,
  { closed, poisoned, skippedLocked }: BatchResult
) {
  const clock = yield* CycleClock
  const metrics = yield* Metrics.ClosingMetrics
  const signals = yield* RecorderSignals
  yield* Ref.update(counts, (before) =>
    CycleSummary.addPoison(
      CycleSummary.addSkippedLocked(CycleSummary.addReaped(before, phase.outcome, closed.length), skippedLocked),
      poisoned.length
    )
  )
  yield* Metric.update(Metrics.skipLocked, skippedLocked)
  yield* Metric.update(Metrics.errors, poisoned.length)
  const committedAt = yield* clock.asOf
  yield* Effect.forEach(closed, (event) => metrics.observe(event, phase.outcome, committedAt), { discard: true })
  yield* signals.offer(
    closed.flatMap((event) =>
      event._tag === "ConferenceEnded"
        ? StopRequest.forRecordings(event.conferenceId, event.endReason, event.recordings)
        : []
    )
  )
  yield* Effect.forEach(closed, logReaped, { discard: true })
  yield* Effect.forEach(poisoned, logPoisoned(phase), { discard: true })
})

// A locked table must not take the time of the phases that follow.
const lookUpLimit = "2 seconds"

/**
 * R10 for provisions that failed. Their transition needs no recordings, so they are looked up only now: an unreadable
 * recordings table must not keep such rooms open.
 */
export const stopFailedRecordings = Effect.fnUntraced(
  function* ({ closed }: BatchResult) {
    const failed = closed.filter((event) => event._tag === "ConferenceProvisionFailed")
    if (failed.length === 0) return
    const repository = yield* ConferenceRepository
    const signals = yield* RecorderSignals
    const details = yield* repository.details(failed.map((event) => event.conferenceId))
    yield* signals.offer(
      failed.flatMap((event) => {
        const found = details.get(event.conferenceId)
        return found !== undefined && Result.isSuccess(found)
          ? StopRequest.forRecordings(event.conferenceId, event.endReason, found.success.recordings)
          : []
      })
    )
  },
  Effect.timeout(lookUpLimit),
  // The batch is committed: whatever happens here must not make its phase look failed.
  Effect.catchCause((cause) =>
    Effect.logWarning("recordings of failed provisions were not looked up, no stop signal", cause)
  )
)
