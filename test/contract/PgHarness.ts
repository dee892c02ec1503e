/** The harness of the contract suites on PostgreSQL, on connections of its own. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, type Redacted, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { Closing } from "../../src/domain/Closing.ts"
import type { ConferenceId } from "../../src/domain/ConferenceSession.ts"
import * as Instant from "../../src/domain/Instant.ts"
import type { PoisonRow, RunRow } from "../fakes/Tables.ts"
import { at, jobRunId, type ParticipantRow, type RecordingRow, type SessionRow } from "../support/Sessions.ts"
import { Harness, type StoredMessage, type StoredSignal } from "./Harness.ts"
import { commitGate, install } from "./PgRefusals.ts"
import { readAll, readDelivery, toColumns } from "./PgRows.ts"

const applicationName = "contract-harness"

const tables = [
  "conference_sessions",
  "conference_participants",
  "call_recordings",
  "outbox_messages",
  "realtime_outbox",
  "conference_reaper_poison",
  "conference_reaper_closings",
  "conference_reaper_runs"
]
const delivery = ["id", "attempts", "last_error", "next_attempt_at", "parked_at"]

/** The server tells nobody that somebody waits, so it is asked until it is so. */
const until = <E>(condition: Effect.Effect<boolean, E>): Effect.Effect<void> =>
  condition.pipe(
    Effect.repeat({ until: (met) => met, schedule: Schedule.spaced("5 millis") }),
    Effect.orDie,
    Effect.asVoid
  )

const asks = (sql: SqlClient) => (condition: string) =>
  sql.unsafe<{ met: boolean }>(`select exists (${condition}) as met`).pipe(Effect.map(([row]) => row?.met === true))

const inOwnDatabase = "database = (select oid from pg_database where datname = current_database())"

const writing = (sql: SqlClient) => {
  const insert = (table: string, rows: ReadonlyArray<object>) =>
    Effect.orDie(
      Effect.forEach(rows, (row) => sql`insert into ${sql(`messenger.${table}`)} ${sql.insert(toColumns(row))}`, {
        discard: true
      })
    )
  const update = (id: ConferenceId, changes: Partial<SessionRow>) =>
    sql`update messenger.conference_sessions set ${sql.update(toColumns(changes))} where id = ${id}::uuid`.pipe(
      Effect.orDie,
      Effect.asVoid
    )
  return { insert, update }
}

/** A transaction on a connection of its own, open until its scope ends. */
const otherSide = Effect.fnUntraced(function* (sql: SqlClient) {
  const connection = yield* Effect.orDie(sql.reserve)
  const on = <A, E>(effect: Effect.Effect<A, E>) =>
    effect.pipe(Effect.provideService(sql.transactionService, [connection, 0]), Effect.orDie, Effect.asVoid)
  yield* Effect.acquireRelease(on(sql`begin`), () => on(sql`rollback`))
  return {
    lockRow: (id: ConferenceId) => on(sql`select from messenger.conference_sessions where id = ${id}::uuid for update`),
    update: (id: ConferenceId, changes: Partial<SessionRow>) => on(writing(sql).update(id, changes)),
    commit: on(sql`commit`),
    rollback: on(sql`rollback`)
  }
})

const holdCommit = Effect.fnUntraced(function* (sql: SqlClient) {
  const connection = yield* Effect.orDie(sql.reserve)
  const on = (statement: string) => Effect.asVoid(Effect.orDie(connection.executeUnprepared(statement, [], undefined)))
  const release = on("select pg_advisory_unlock_all()")
  yield* Effect.acquireRelease(on(`select pg_advisory_lock(${commitGate})`), () => release)
  const isHeld = asks(sql)(
    `select from pg_locks where locktype = 'advisory' and objid = ${commitGate} and not granted and ${inOwnDatabase}`
  )
  return { reached: until(isHeld), release }
})

const connections = (sql: SqlClient) => ({
  killConnections: sql`select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where datname = current_database() and application_name <> ${applicationName}`.pipe(Effect.orDie, Effect.asVoid),
  lockWaitSeen: until(
    asks(sql)("select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")
  ),
  passLockTtl: until(
    asks(sql)(`select where not exists (select from pg_locks where locktype = 'advisory' and ${inOwnDatabase})`)
  ),
  databaseTime: sql<{ now: string }>`select to_json(clock_timestamp()) #>> '{}' as now`.pipe(
    Effect.map(([row]) => at(row?.now ?? "")),
    Effect.orDie
  )
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  yield* Effect.orDie(install)
  const { insert, update } = writing(sql)
  const epoch = Instant.fromMillis(0)

  return Harness.of({
    ...connections(sql),
    reset: sql`truncate test_refusals, ${sql.csv(tables.map((table) => sql`${sql(`messenger.${table}`)}`))}`.pipe(
      Effect.orDie,
      Effect.asVoid
    ),
    insertSessions: (rows) => insert("conference_sessions", rows),
    insertParticipants: (rows) => insert("conference_participants", rows),
    insertRecordings: (rows) =>
      insert(
        "call_recordings",
        rows.map((row) => ({ ...row, updatedAt: row.createdAt }))
      ),
    insertRuns: (count) =>
      sql`insert into messenger.conference_reaper_runs
        select (left(${jobRunId(0)}, 24) || lpad(to_hex(n), 12, '0'))::uuid, 'past',
          ${Instant.format(epoch)}::timestamptz + n * interval '1 second', 'completed', 0, 0, 0, 0, 0, 1, null
        from generate_series(1, ${count}::int) n`.pipe(Effect.orDie, Effect.asVoid),
    updateSession: update,
    otherSide: otherSide(sql),
    holdCommit: holdCommit(sql),
    refuse: (point, ids) =>
      sql`insert into test_refusals select ${point}, unnest(${ids}::uuid[])`.pipe(Effect.orDie, Effect.asVoid),
    sessions: readAll<SessionRow>(sql, "conference_sessions", "id"),
    participants: readAll<ParticipantRow>(sql, "conference_participants", "joined_at, user_id"),
    recordings: readAll<RecordingRow>(sql, "call_recordings", "id", ["updated_at"]),
    outbox: readAll<StoredMessage>(sql, "outbox_messages", "id", [...delivery, "published_at"]),
    realtime: readAll<StoredSignal>(sql, "realtime_outbox", "id", [...delivery, "dispatched_at", "expired_at"]),
    eventDelivery: readDelivery(sql, "outbox_messages", "published_at", "null"),
    signalDelivery: readDelivery(sql, "realtime_outbox", "dispatched_at", "expired_at"),
    closings: readAll<Closing>(sql, "conference_reaper_closings", "conference_id", ["created_at"]),
    poison: readAll<PoisonRow>(sql, "conference_reaper_poison", "conference_id, phase", ["row_version"]),
    runs: readAll<RunRow>(sql, "conference_reaper_runs", "as_of desc")
  })
})

export const layer = (url: Redacted.Redacted) =>
  Layer.effect(Harness, make).pipe(
    Layer.provide(PgClient.layer({ url, applicationName, maxConnections: 6 })),
    Layer.orDie
  )
