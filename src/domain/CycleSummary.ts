/** The result of one tick: what `once` prints, what `conference_reaper_runs` keeps and what the log says (M). */
import type { JobRunId } from "./ConferenceSession.ts"
import * as Instant from "./Instant.ts"
import type { Outcome } from "./Phase.ts"

export type CycleOutcome = "completed" | "lock-busy" | "refused" | "timed-out" | "failed"

export interface CycleSummary {
  readonly jobRunId: JobRunId
  readonly asOf: Instant.Instant
  readonly outcome: CycleOutcome
  readonly emptyTimeoutCount: number
  readonly provisionFailedCount: number
  readonly staleTimeoutCount: number
  readonly skippedLockedCount: number
  readonly poisonCount: number
  readonly durationMs: number
  /** Why the cycle did not complete; null when it did. */
  readonly error: string | null
}

/** Counts of one cycle while it runs. */
export interface Counts {
  readonly reaped: Readonly<Record<Outcome, number>>
  readonly skippedLocked: number
  readonly poison: number
}

export const noCounts: Counts = {
  reaped: { empty_timeout: 0, provision_failed: 0, stale_timeout: 0 },
  skippedLocked: 0,
  poison: 0
}

export const addReaped = (counts: Counts, outcome: Outcome, n: number): Counts => ({
  ...counts,
  reaped: { ...counts.reaped, [outcome]: counts.reaped[outcome] + n }
})

export const addSkippedLocked = (counts: Counts, n: number): Counts => ({
  ...counts,
  skippedLocked: counts.skippedLocked + n
})

export const addPoison = (counts: Counts, n: number): Counts => ({ ...counts, poison: counts.poison + n })

export const make = (
  run: Pick<CycleSummary, "jobRunId" | "asOf" | "outcome" | "durationMs" | "error">,
  counts: Counts
): CycleSummary => ({
  ...run,
  emptyTimeoutCount: counts.reaped.empty_timeout,
  provisionFailedCount: counts.reaped.provision_failed,
  staleTimeoutCount: counts.reaped.stale_timeout,
  skippedLockedCount: counts.skippedLocked,
  poisonCount: counts.poison
})

/** The JSON of `once --json`, names as the interface fixes them. */
export const toJson = (summary: CycleSummary): Record<string, string | number> => ({
  jobRunId: summary.jobRunId,
  asOf: Instant.format(summary.asOf),
  outcome: summary.outcome,
  emptyTimeoutCount: summary.emptyTimeoutCount,
  provisionFailedCount: summary.provisionFailedCount,
  staleTimeoutCount: summary.staleTimeoutCount,
  skippedLockedCount: summary.skippedLockedCount,
  poisonCount: summary.poisonCount,
  durationMs: summary.durationMs
})
