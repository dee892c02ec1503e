/**
 * The sessions in PostgreSQL. Predicates are built from the phase table, with statuses as literals, so that the planner
 * can use the partial index in generic plans too (R8). Instants travel as ISO text: the server compares microseconds.
 */
import { Effect, Layer, Result, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import { ConferenceDetails, ConferenceId, ConferenceSession } from "../domain/ConferenceSession.ts"
import * as Instant from "../domain/Instant.ts"
import { emptyRoom, type Phase, provisionTimeout, staleLive } from "../domain/Phase.ts"
import { type ClaimedRow, ConferenceRepository, MalformedRow, type Scan } from "../services/ConferenceRepository.ts"
import { orRefused, orUnavailable } from "./PgError.ts"

interface ClaimRow {
  readonly id: string
  readonly session: unknown
  readonly poisonAttempts: number
}

interface DetailsRow {
  readonly id: string
  readonly details: unknown
}

const decodeSession = Schema.decodeUnknownResult(ConferenceSession)
const decodeDetails = Schema.decodeUnknownResult(ConferenceDetails)
// A uuid column always comes back as lower-case text.
const conferenceId = (id: string) => ConferenceId.make(id)

const malformed = (id: ConferenceId) => (error: Schema.SchemaError) =>
  new MalformedRow({ conferenceId: id, reason: error.message.replaceAll(/\s*\n\s*/g, " ") })

const sinceColumn = (phase: Phase) => (phase.since === "createdAt" ? "created_at" : "last_activity_at")

export const layer = Layer.effect(
  ConferenceRepository,
  Effect.gen(function* () {
    const sql = yield* SqlClient

    const at = (instant: Instant.Instant): Fragment => sql`${Instant.format(instant)}::timestamptz`
    const since = (phase: Phase): Fragment => sql.literal(`s.${sinceColumn(phase)}`)
    // The redundant `in` is the predicate of ix_conf_active, word for word.
    const isDue = ({ phase, cutoff }: Pick<Scan, "phase" | "cutoff">): Fragment =>
      sql`s.status = ${sql.literal(`'${phase.from}'`)} and s.status in ('Provisioning', 'Active')
        and ${since(phase)} <= ${at(cutoff)}${sql.literal(phase.requiresEmpty ? " and s.active_participant_count = 0" : "")}`
    const isRetryDue = (scan: Scan): Fragment =>
      sql`(p.next_attempt_at <= ${at(scan.asOf)} or p.row_version is distinct from s.xmin::text)`
    const poisonOf = (phase: Phase): Fragment =>
      sql`messenger.conference_reaper_poison p on p.conference_id = s.id and p.phase = ${phase.name}`
    const sessionJson = sql.literal(`jsonb_build_object(
      'id', s.id, 'chatId', s.chat_id, 'dealId', s.deal_id, 'tenantId', s.tenant_id,
      'startedByUserId', s.started_by_user_id, 'mediaType', s.media_type, 'status', s.status,
      'createdAt', s.created_at, 'lastActivityAt', s.last_activity_at, 'startedAt', s.started_at,
      'activeParticipantCount', s.active_participant_count, 'peakParticipantCount', s.peak_participant_count)`)

    const toClaimed = (row: ClaimRow): ClaimedRow => {
      const id = conferenceId(row.id)
      const session = Result.mapError(decodeSession(row.session), malformed(id))
      return { id, session, poisonAttempts: row.poisonAttempts }
    }

    // Two statements: one ordered by "has a poison record" first would have to read and sort the whole backlog.
    const claimHealthy = (scan: Scan, limit: number, tried: ReadonlyArray<ConferenceId>) =>
      sql<ClaimRow>`select s.id::text as id, ${sessionJson} as session, 0 as "poisonAttempts"
        from messenger.conference_sessions s
        where ${isDue(scan)} and s.id <> all(${tried}::uuid[])
          and not exists (select from messenger.conference_reaper_poison p
                          where p.conference_id = s.id and p.phase = ${scan.phase.name})
        order by ${since(scan.phase)}, s.id
        limit ${limit}
        for update of s skip locked`
    const claimPoison = (scan: Scan, limit: number, tried: ReadonlyArray<ConferenceId>) =>
      sql<ClaimRow>`select s.id::text as id, ${sessionJson} as session, p.attempts as "poisonAttempts"
        from messenger.conference_sessions s join ${poisonOf(scan.phase)}
        where ${isDue(scan)} and s.id <> all(${tried}::uuid[]) and ${isRetryDue(scan)}
        order by ${since(scan.phase)}, s.id
        limit ${limit}
        for update of s skip locked`

    // The end of a full batch. Poison is left out: a refused session of an earlier phase is no mark of how far the claim
    // came, and a recorded one may just not have had its turn.
    const lastClaimed = (scan: Scan, claimed: ReadonlyArray<ConferenceId>): Fragment =>
      sql`select ${since(scan.phase)}, s.id from messenger.conference_sessions s
        where s.id = any(${claimed}::uuid[])
          and not exists (select from messenger.conference_reaper_poison p where p.conference_id = s.id)
        order by ${since(scan.phase)} desc, s.id desc limit 1`

    // What the claim's own order put before its end, and the claim did not take, others had locked.
    const countPassedOver = (scan: Scan, claimed: ReadonlyArray<ConferenceId>, batchIsFull: boolean) =>
      sql<{ n: number }>`select count(*)::int as n
        from messenger.conference_sessions s left join ${poisonOf(scan.phase)}
        where ${isDue(scan)} and s.id <> all(${claimed}::uuid[])
          and (p.conference_id is null or (not ${batchIsFull} and ${isRetryDue(scan)}))
          and (not ${batchIsFull} or (${since(scan.phase)}, s.id) <= (${lastClaimed(scan, claimed)}))`.pipe(
        Effect.map(([row]) => row?.n ?? 0)
      )

    // Rows as old as the end of a full batch, but behind it by id: the batch had no room for them, so only a try tells which
    // of them are locked. As many as a bulk write of the messenger may leave level; more than this many are not looked at.
    const countLockedLevel = (scan: Scan, claimed: ReadonlyArray<ConferenceId>) =>
      sql<{ n: number }>`with level as (
          select s.id from messenger.conference_sessions s, (${lastClaimed(scan, claimed)}) as last(since, id)
          where ${isDue(scan)} and ${since(scan.phase)} = last.since and s.id > last.id and s.id <> all(${claimed}::uuid[])
            and not exists (select from messenger.conference_reaper_poison p
                            where p.conference_id = s.id and p.phase = ${scan.phase.name})
          order by s.id limit 1000
        ), free as (
          select s.id from messenger.conference_sessions s where s.id in (select id from level)
          for no key update of s skip locked
        )
        select ((select count(*) from level) - (select count(*) from free))::int as n`.pipe(
        Effect.map(([row]) => row?.n ?? 0)
      )

    const writeTransitions = (scan: Scan, ids: ReadonlyArray<ConferenceId>, durations: ReadonlyArray<number>) =>
      sql<{ id: string }>`update messenger.conference_sessions s
        set status = ${scan.phase.to}, end_reason = ${scan.phase.endReason},
          ended_at = ${at(scan.asOf)}, updated_at = ${at(scan.asOf)}${sql.literal(
            scan.phase.to === "Ended" ? ", duration_seconds = t.duration_seconds" : ""
          )}
        from unnest(${ids}::uuid[], ${durations}::integer[]) as t(id, duration_seconds)
        where s.id = t.id and ${isDue(scan)}
        returning s.id::text as id`

    return ConferenceRepository.of({
      claim: Effect.fn("ConferenceRepository.claim")(function* (scan, limit, tried) {
        const healthy = yield* claimHealthy(scan, limit, tried)
        const poison = healthy.length < limit ? yield* claimPoison(scan, limit - healthy.length, tried) : []
        return [...healthy, ...poison].map(toClaimed)
      }, orUnavailable("claim")),

      countSkippedLocked: Effect.fn("ConferenceRepository.countSkippedLocked")(function* (scan, claimed, batchIsFull) {
        const passedOver = yield* countPassedOver(scan, claimed, batchIsFull)
        return batchIsFull ? passedOver + (yield* countLockedLevel(scan, claimed)) : passedOver
      }, orUnavailable("count skipped")),

      details: (ids) =>
        sql<DetailsRow>`select i.id::text as id, jsonb_build_object(
            'participants', coalesce((
              select jsonb_agg(jsonb_build_object('userId', p.user_id, 'joinedAt', p.joined_at, 'leftAt', p.left_at)
                order by p.joined_at, p.user_id)
              from messenger.conference_participants p where p.conference_id = i.id), '[]'),
            'recordings', coalesce((
              select jsonb_agg(jsonb_build_object('id', r.id, 'status', r.status, 'externalRef', r.external_ref,
                'createdAt', r.created_at) order by r.created_at, r.id)
              from messenger.call_recordings r where r.conference_id = i.id), '[]')) as details
          from unnest(${ids}::uuid[]) as i(id)`.pipe(
          orUnavailable("details"),
          Effect.map(
            (rows) =>
              new Map(
                rows.map((row) => {
                  const id = conferenceId(row.id)
                  return [id, Result.mapError(decodeDetails(row.details), malformed(id))] as const
                })
              )
          )
        ),

      apply: Effect.fn("ConferenceRepository.apply")(function* (scan, events) {
        const ids = events.map((event) => event.conferenceId)
        const durations = events.map((event) => (event._tag === "ConferenceEnded" ? event.durationSeconds : 0))
        const written = (yield* writeTransitions(scan, ids, durations)).map((row) => conferenceId(row.id))
        yield* sql`delete from messenger.conference_reaper_poison where conference_id = any(${written}::uuid[])`
        return new Set(written)
      }, orRefused("apply")),

      suppressed: (scan, ids) =>
        sql<{ id: string }>`select s.id::text as id from messenger.conference_sessions s
          where s.id = any(${ids}::uuid[]) and ${isDue(scan)}`.pipe(
          orUnavailable("apply"),
          Effect.map((rows) => rows.map((row) => conferenceId(row.id)))
        ),

      recordPoison: (scan, refusals) => {
        const rows = refusals.map(({ nextAttemptAt, ...refusal }) => ({
          ...refusal,
          nextAttemptAt: Instant.format(nextAttemptAt)
        }))
        return sql`insert into messenger.conference_reaper_poison as p
            (conference_id, phase, attempts, last_error, first_failed_at, last_failed_at, next_attempt_at, row_version)
          select r."conferenceId", ${scan.phase.name}, r.attempts, r."lastError", ${at(scan.asOf)}, ${at(scan.asOf)},
            r."nextAttemptAt", (select s.xmin::text from messenger.conference_sessions s where s.id = r."conferenceId")
          from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r(
            "conferenceId" uuid, attempts integer, "lastError" text, "nextAttemptAt" timestamptz)
          on conflict (conference_id, phase) do update set attempts = excluded.attempts,
            last_error = excluded.last_error, last_failed_at = excluded.last_failed_at,
            next_attempt_at = excluded.next_attempt_at, row_version = excluded.row_version`.pipe(
          orUnavailable("record poison"),
          Effect.asVoid
        )
      },

      backlog: (asOf, windows) => {
        const due = (phase: Phase) => isDue({ phase, cutoff: Instant.minus(asOf, phase.window(windows)) })
        return sql<{ overdue: number; poison: number }>`select
            (select count(*)::int from messenger.conference_sessions s
              where (${due(emptyRoom)}) or (${due(provisionTimeout)}) or (${due(staleLive)})) as overdue,
            (select count(distinct p.conference_id)::int from messenger.conference_reaper_poison p
              join messenger.conference_sessions s on s.id = p.conference_id
              where s.status in ('Provisioning', 'Active')) as poison`.pipe(
          orUnavailable("backlog"),
          Effect.map(([row]) => row ?? { overdue: 0, poison: 0 })
        )
      }
    })
  })
)
