/** A migrated database for a suite, and the messenger's commands on it with a clock and a hold of the test's choice. */
import { Effect, Layer, Ref } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as Instant from "../../src/domain/Instant.ts"
import * as MessengerWrites from "../../src/simulator/MessengerWrites.ts"
import * as Run from "../../src/simulator/Run.ts"
import { clientLayer, migratedDatabase } from "../support/postgres.ts"
import { at } from "../support/Sessions.ts"

export const database = Layer.unwrap(Effect.map(migratedDatabase, ({ url }) => clientLayer(url)))

// With microseconds, which a Date would lose.
export const noon = at("2026-01-01T12:00:00.000123Z")

export const secondsIn = (seconds: number): Instant.Instant =>
  Instant.Instant.make(noon + BigInt(Math.round(seconds * 1_000_000)))

/** Commands at the time that `clock` stands at, with rooms and people of their own. */
export const messenger = (hold: Effect.Effect<void> = Effect.void) =>
  Effect.gen(function* () {
    const clock = yield* Ref.make(noon)
    const writes = yield* MessengerWrites.make({ now: Ref.get(clock), hold })
    return { writes, clock, run: yield* Run.fresh }
  })

export const roomOf = (run: Run.Run, number = 0): MessengerWrites.Room => ({
  id: run.conferenceId(number),
  chatId: run.chatId(number),
  dealId: run.dealId(number),
  tenantId: run.tenantId(number),
  startedByUserId: run.userId(number, 0),
  mediaType: "Video"
})

/** A session as text, times with their microseconds. */
export interface StoredRoom {
  readonly status: string
  readonly endReason: string | null
  readonly createdAt: string
  readonly startedAt: string | null
  readonly lastActivityAt: string
  readonly updatedAt: string
  readonly endedAt: string | null
  readonly durationSeconds: number | null
  readonly count: number
  readonly peak: number
}

export const stored = (roomId: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const [row] = yield* sql.unsafe<StoredRoom>(
      `select status, end_reason as "endReason", ${utc("created_at")} as "createdAt",
         ${utc("started_at")} as "startedAt", ${utc("last_activity_at")} as "lastActivityAt",
         ${utc("updated_at")} as "updatedAt", ${utc("ended_at")} as "endedAt", duration_seconds as "durationSeconds",
         active_participant_count as "count", peak_participant_count as "peak"
       from messenger.conference_sessions where id = $1`,
      [roomId]
    )
    return row
  })

export interface StoredParticipant {
  readonly userId: string
  readonly joinedAt: string
  readonly leftAt: string | null
}

export const roster = (roomId: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    return yield* sql.unsafe<StoredParticipant>(
      `select user_id as "userId", ${utc("joined_at")} as "joinedAt", ${utc("left_at")} as "leftAt"
       from messenger.conference_participants where conference_id = $1 order by joined_at, user_id`,
      [roomId]
    )
  })

export const recordings = (roomId: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    return yield* sql<{ readonly id: string; readonly status: string; readonly externalRef: string | null }>`
      select id, status, external_ref as "externalRef" from messenger.call_recordings
      where conference_id = ${roomId} order by created_at, id`
  })

const utc = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
