/**
 * The messenger's commands as it carries them out: one transaction each, under the row lock of the session, at the time
 * of the messenger's own clock. A terminal room is never changed and never revived (INV-CONF-4): the command answers false.
 *
 * No outbox row is written here, although a messenger announces the conferences that it ends itself: this way the rows in
 * both outboxes are exactly the rooms that the worker closed, and the audit can count them.
 */
import { Cause, Clock, Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { MediaType, RecordingStatus } from "../domain/ConferenceSession.ts"
import * as Instant from "../domain/Instant.ts"

export interface Room {
  readonly id: string
  readonly chatId: string
  readonly dealId: string
  readonly tenantId: string
  readonly startedByUserId: string
  readonly mediaType: MediaType
}

/**
 * True: done, or already so, as when a client repeats a command whose answer it never got. False: refused, because the
 * room is terminal, not admitted, or unknown.
 */
export type Answer = Effect.Effect<boolean, SqlError>

export interface MessengerWrites {
  /** A new session in `Provisioning`. */
  readonly provision: (room: Room) => Answer
  /** `Provisioning` -> `Active`, as the admission webhook does. */
  readonly admit: (roomId: string) => Answer
  readonly join: (roomId: string, userId: string) => Answer
  /** The count never falls below 0. */
  readonly leave: (roomId: string, userId: string) => Answer
  readonly heartbeat: (roomId: string) => Answer
  /** `Active` -> `Ended` with EndReason `Completed`. Refused from then on, like any other command. */
  readonly endConference: (roomId: string) => Answer
  /** A recording in `Pending`. */
  readonly startRecording: (roomId: string, recordingId: string) => Answer
  /** Moves a recording on, also after its room was closed; refused once it is `Available` or `Failed`. */
  readonly advanceRecording: (recordingId: string, status: RecordingStatus) => Answer
}

export interface Options {
  /** The messenger's clock; read under the row lock, so that times follow the order of the locks. */
  readonly now: Effect.Effect<Instant.Instant>
  /** Spent in each transaction after its writes, with the row lock held. A race waits here for the other side. */
  readonly hold: Effect.Effect<void>
}

/** The clock of this process, in microseconds. */
export const systemNow: Effect.Effect<Instant.Instant> = Effect.map(Clock.currentTimeNanos, (nanos) =>
  Instant.Instant.make(nanos / 1000n)
)

// A connection lost inside a transaction makes the client's ROLLBACK fail too, and that turns the failure into a defect.
const inTransaction = <A>(sql: SqlClient, body: Effect.Effect<A, SqlError>): Effect.Effect<A, SqlError> =>
  sql.withTransaction(body).pipe(
    Effect.catchCause((cause) => {
      if (Cause.hasInterrupts(cause)) return Effect.failCause(cause)
      const lost = cause.reasons.flatMap((reason) =>
        Cause.isDieReason(reason) && isSqlError(reason.defect) ? [reason.defect] : []
      )
      return lost[0] === undefined ? Effect.failCause(cause) : Effect.fail(lost[0])
    })
  )

type Write = (at: string) => Effect.Effect<unknown, SqlError>

/** Commands on the client in the context. */
export const make = (options: Options): Effect.Effect<MessengerWrites, never, SqlClient> =>
  Effect.map(SqlClient, (sql) => {
    const now = Effect.map(options.now, Instant.format)
    const written = (write: Write) => now.pipe(Effect.andThen(write), Effect.andThen(options.hold), Effect.as(true))

    /** Carries out the write for the session's status, under its row lock; a status without one is refused. */
    const onSession = (roomId: string, writes: { readonly Provisioning?: Write; readonly Active?: Write }): Answer =>
      inTransaction(
        sql,
        Effect.gen(function* () {
          const [row] = yield* sql<{ status: string }>`
            select status from messenger.conference_sessions where id = ${roomId} for update`
          const write =
            row?.status === "Active" ? writes.Active : row?.status === "Provisioning" ? writes.Provisioning : undefined
          return write === undefined ? false : yield* written(write)
        })
      )

    const touch = (roomId: string, at: string) => sql`
      update messenger.conference_sessions set last_activity_at = ${at}, updated_at = ${at} where id = ${roomId}`

    const alreadySo: Write = () => Effect.void

    return {
      provision: (room) =>
        inTransaction(
          sql,
          written(
            (at) => sql`
              insert into messenger.conference_sessions
                (id, chat_id, deal_id, tenant_id, started_by_user_id, media_type, status, created_at, last_activity_at,
                 updated_at)
              values (${room.id}, ${room.chatId}, ${room.dealId}, ${room.tenantId}, ${room.startedByUserId},
                ${room.mediaType}, 'Provisioning', ${at}, ${at}, ${at})
              on conflict (id) do nothing`
          )
        ),

      admit: (roomId) =>
        onSession(roomId, {
          Active: alreadySo,
          Provisioning: (at) => sql`
            update messenger.conference_sessions
            set status = 'Active', started_at = ${at}, last_activity_at = ${at}, updated_at = ${at}
            where id = ${roomId}`
        }),

      join: (roomId, userId) =>
        onSession(roomId, {
          Active: (at) => sql`
            with present as (
              select 1 from messenger.conference_participants
              where conference_id = ${roomId} and user_id = ${userId} and left_at is null
            ), joined as (
              insert into messenger.conference_participants (conference_id, user_id, joined_at)
              select ${roomId}::uuid, ${userId}::uuid, ${at}::timestamptz where not exists (select from present)
              returning 1
            )
            update messenger.conference_sessions
            set active_participant_count = active_participant_count + 1,
                peak_participant_count = greatest(peak_participant_count, active_participant_count + 1),
                last_activity_at = ${at}, updated_at = ${at}
            where id = ${roomId} and exists (select from joined)`
        }),

      leave: (roomId, userId) =>
        onSession(roomId, {
          Active: (at) => sql`
            with gone as (
              update messenger.conference_participants set left_at = ${at}
              where conference_id = ${roomId} and user_id = ${userId} and left_at is null
              returning 1
            )
            update messenger.conference_sessions
            set active_participant_count = greatest(active_participant_count - 1, 0),
                last_activity_at = ${at}, updated_at = ${at}
            where id = ${roomId} and exists (select from gone)`
        }),

      heartbeat: (roomId) => onSession(roomId, { Active: (at) => touch(roomId, at) }),

      endConference: (roomId) =>
        onSession(roomId, {
          Active: (at) => sql`
            update messenger.conference_sessions
            set status = 'Ended', end_reason = 'Completed', ended_at = ${at}, updated_at = ${at},
                duration_seconds = floor(extract(epoch from ${at}::timestamptz - started_at))::int
            where id = ${roomId}`
        }),

      startRecording: (roomId, recordingId) =>
        onSession(roomId, {
          Active: (at) => sql`
            insert into messenger.call_recordings (id, conference_id, status, created_at, updated_at)
            values (${recordingId}, ${roomId}, 'Pending', ${at}, ${at})
            on conflict (id) do nothing`
        }),

      advanceRecording: (recordingId, status) =>
        inTransaction(
          sql,
          Effect.gen(function* () {
            const [row] = yield* sql<{ status: string }>`
              select status from messenger.call_recordings where id = ${recordingId} for update`
            if (row === undefined) return false
            if (row.status === status) return true
            if (row.status === "Available" || row.status === "Failed") return false
            return yield* written(
              // The media stack names its job once it has one.
              (at) => sql`
                update messenger.call_recordings
                set status = ${status}, external_ref = coalesce(external_ref, ${`egress-${recordingId}`}),
                    updated_at = ${at}
                where id = ${recordingId}`
            )
          })
        )
    }
  })
