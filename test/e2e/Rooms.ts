/** The database as an end-to-end test sees it: rooms to close, what became of them, and who is connected. */
import { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer, Redacted, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as Instant from "../../src/domain/Instant.ts"
import { lockKey } from "../../src/layers/PgRunLock.ts"
import { toColumns } from "../contract/PgRows.ts"
import { freshDatabase, migratedDatabase } from "../support/postgres.ts"
import { before, emptySession, type SessionRow } from "../support/Sessions.ts"

/** A row for each distinct state of rooms: the counts of what must exist once for an ended one and not for an open one. */
interface Standing {
  readonly status: string
  readonly events: number
  readonly pushes: number
  readonly closings: number
  readonly rooms: number
}

const workers = "datname = current_database() and application_name like 'conference-room-reaper%'"

/** The server tells nobody that something has come about, so it is asked until it is so. */
const until = <E>(what: string, condition: Effect.Effect<boolean, E>): Effect.Effect<void> =>
  condition.pipe(
    Effect.repeat({ until: (met) => met, schedule: Schedule.spaced("10 millis") }),
    Effect.timeoutOrElse({ duration: "30 seconds", orElse: () => Effect.die(new Error(`waited in vain: ${what}`)) }),
    Effect.orDie,
    Effect.asVoid
  )

// A batch stands at the gate while a busy machine starts a process; its statements have a quarter of this.
const patience = { REAPER_MAX_RUN_DURATION: "100s" }

const asks = (sql: SqlClient) => (condition: string) =>
  sql.unsafe<{ met: boolean }>(`select exists (${condition}) as met`).pipe(
    Effect.map(([row]) => row?.met === true),
    Effect.orDie
  )

const run = (sql: SqlClient) => (statement: string) => Effect.asVoid(Effect.orDie(sql.unsafe(statement)))

// The update of a room waits here for as long as the room stands in the table; each look has a snapshot of its own.
const gate = [
  "create table public.test_gate (conference_id uuid)",
  `create function public.test_wait() returns trigger language plpgsql as $$ begin
     while exists (select from public.test_gate g where g.conference_id = new.id) loop perform pg_sleep(0.01); end loop;
     return new;
   end $$`,
  `create trigger test_wait before update on messenger.conference_sessions
     for each row execute function public.test_wait()`
]

const standing = (sql: SqlClient) =>
  sql<Standing>`select s.status, o.n as events, r.n as pushes, c.n as closings, count(*)::int as rooms
    from messenger.conference_sessions s
      cross join lateral (select count(*)::int as n from messenger.outbox_messages
        where payload->>'ConferenceId' = s.id::text) o
      cross join lateral (select count(*)::int as n from messenger.realtime_outbox where session_id = s.id) r
      cross join lateral (select count(*)::int as n from messenger.conference_reaper_closings
        where conference_id = s.id) c
    group by 1, 2, 3, 4 order by 1, 2, 3, 4`.pipe(Effect.orDie)

const ourLock = `from pg_locks where locktype = 'advisory' and objsubid = 1
  and (classid::bigint << 32) | objid::bigint = ${lockKey}
  and database = (select oid from pg_database where datname = current_database())`

const connections = (sql: SqlClient) => {
  const ask = asks(sql)
  const inBatch = `from pg_stat_activity where ${workers} and wait_event = 'PgSleep'`
  return {
    runLockIsHeld: ask(`select ${ourLock}`),
    runLockIsFree: Effect.map(ask(`select ${ourLock}`), (held) => !held),
    /** A worker's update waits at the gate: it is in the middle of its batch. */
    midBatch: until("a batch at the gate", ask(`select ${inBatch}`)),
    /** No connection of any worker is left, so what they did is fixed or undone. */
    workersGone: until(
      "all workers gone",
      ask(`select where not exists (select from pg_stat_activity where ${workers})`)
    ),
    lockWait: until(
      "a worker waits for a lock",
      ask(`select from pg_stat_activity where ${workers} and wait_event_type = 'Lock'`)
    ),
    batchGone: until("the batch is undone", ask(`select where not exists (select ${inBatch})`)),
    terminate: (applicationName: string) =>
      sql`select pg_terminate_backend(pid, 5000) from pg_stat_activity
        where datname = current_database() and application_name = ${applicationName} and state <> 'idle'`.pipe(
        Effect.orDie,
        Effect.map((rows) => rows.length)
      )
  }
}

const make = (sql: SqlClient, observer: SqlClient) => {
  const insert = (rows: ReadonlyArray<SessionRow>) =>
    sql`insert into messenger.conference_sessions
      select * from jsonb_populate_recordset(null::messenger.conference_sessions, ${JSON.stringify(rows.map(toColumns))}::jsonb)`.pipe(
      Effect.orDie,
      Effect.asVoid
    )
  return {
    sql,
    until,
    run: run(sql),
    insert,
    /** Empty rooms with numbers from `first`, the higher the longer due. */
    insertDue: (count: number, first = 1) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        insert(
          Array.from({ length: count }, (_, n) =>
            emptySession(first + n, before(Instant.fromMillis(now), `${600 + n} seconds`))
          )
        )
      ),
    standing: standing(sql),
    /** All rooms are ended, with everything that belongs to it. */
    allEnded: (count: number) =>
      until(
        `${count} rooms ended`,
        Effect.map(
          standing(sql),
          ([first, ...more]) => more.length === 0 && first?.status === "Ended" && first.rooms === count
        )
      ),
    installGate: Effect.forEach(gate, run(sql), { discard: true }),
    closeGate: (row: Pick<SessionRow, "id">) => run(sql)(`insert into public.test_gate values ('${row.id}')`),
    openGate: run(sql)("delete from public.test_gate"),
    ...connections(observer)
  }
}

export const ended = (rooms: number): Standing => ({ status: "Ended", events: 1, pushes: 1, closings: 1, rooms })
export const open = (rooms: number): Standing => ({ status: "Active", events: 0, pushes: 0, closings: 0, rooms })

/** Rooms on the database of a url. */
export const on = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const connect = Layer.build(
    Layer.fresh(PgClient.layer({ url, applicationName: "end-to-end test", maxConnections: 4 }))
  ).pipe(Effect.map((context) => Context.get(context, SqlClient)))
  const sql = yield* connect
  // Within a transaction the server shows its activity as it was at the first look, so whoever looks has another client.
  const observer = yield* connect
  return { ...make(sql, observer), env: { DATABASE_URL: Redacted.value(url), ...patience } }
}, Effect.orDie)

export type Rooms = Effect.Success<ReturnType<typeof on>>

/** Rooms on a migrated database of the test's own. */
export const fresh = Effect.flatMap(migratedDatabase, ({ url }) => on(url))

/** Rooms on a database without tables. */
export const empty = Effect.flatMap(freshDatabase, ({ url }) => on(url))
