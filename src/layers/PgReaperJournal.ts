/** `messenger.conference_reaper_closings` and `messenger.conference_reaper_runs` (W7). */
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { Closing } from "../domain/Closing.ts"
import * as Instant from "../domain/Instant.ts"
import { ReaperJournal } from "../services/ReaperJournal.ts"
import { orRefused, orUnavailable } from "./PgError.ts"

const keptRuns = 10_000
// Per cycle: far more than a cycle adds, far less than would hold locks for long.
const pruneLimit = 5_000

const toRow = (closing: Closing) => ({
  ...closing,
  asOf: Instant.format(closing.asOf),
  dueAt: Instant.format(closing.dueAt)
})

export const layer = Layer.effect(
  ReaperJournal,
  Effect.gen(function* () {
    const sql = yield* SqlClient
    return ReaperJournal.of({
      appendClosings: (closings) =>
        sql`insert into messenger.conference_reaper_closings
            (conference_id, phase, status, end_reason, as_of, due_at, job_run_id, message_id, evidence, created_at)
          select c."conferenceId", c.phase, c.status, c."endReason", c."asOf", c."dueAt", c."jobRunId", c."messageId",
            c.evidence, c."asOf"
          from jsonb_to_recordset(${JSON.stringify(closings.map(toRow))}::jsonb) as c(
            "conferenceId" uuid, phase text, status text, "endReason" text, "asOf" timestamptz, "dueAt" timestamptz,
            "jobRunId" uuid, "messageId" uuid, evidence jsonb)`.pipe(orRefused("append closings"), Effect.asVoid),

      recordRun: (summary, instance) =>
        sql`insert into messenger.conference_reaper_runs
            (job_run_id, instance, as_of, outcome, empty_timeout_count, provision_failed_count, stale_timeout_count,
             skipped_locked_count, poison_count, duration_ms, error)
          values (${summary.jobRunId}::uuid, ${instance}, ${Instant.format(summary.asOf)}::timestamptz, ${summary.outcome},
            ${summary.emptyTimeoutCount}, ${summary.provisionFailedCount}, ${summary.staleTimeoutCount},
            ${summary.skippedLockedCount}, ${summary.poisonCount}, ${summary.durationMs}, ${summary.error})`.pipe(
          orUnavailable("record run"),
          Effect.asVoid
        ),

      prune: Effect.fn("ReaperJournal.prune")(function* (closingsBefore) {
        yield* sql`delete from messenger.conference_reaper_closings where conference_id in (
          select conference_id from messenger.conference_reaper_closings
          where as_of < ${Instant.format(closingsBefore)}::timestamptz order by as_of limit ${pruneLimit})`
        yield* sql`delete from messenger.conference_reaper_runs where job_run_id in (
          select job_run_id from messenger.conference_reaper_runs
          order by as_of desc offset ${keptRuns} limit ${pruneLimit})`
        yield* sql`delete from messenger.conference_reaper_poison p where not exists (
          select from messenger.conference_sessions s
          where s.id = p.conference_id and s.status in ('Provisioning', 'Active'))`
      }, orUnavailable("prune"))
    })
  })
)
