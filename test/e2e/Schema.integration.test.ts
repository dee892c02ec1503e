/** Migrations by real processes: repeated, at once, on tables that the messenger owns, and left to somebody else. */
import { describe, expect, it, vi } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { execute, start } from "./Process.ts"
import * as Rooms from "./Rooms.ts"

vi.setConfig({ testTimeout: 60_000 })

const applied = "applied 0001_tables\napplied 0002_delivery_indexes\n"

const ownTables = ["poison", "closings", "runs", "migrations"].map((name) => `messenger.conference_reaper_${name}`)

/** The tables of the messenger under an owner of their own, and another role for the worker; both go with the scope. */
const foreignTables = Effect.gen(function* () {
  const rooms = yield* Rooms.fresh
  const name = `e2e_${crypto.randomUUID().replaceAll("-", "").slice(0, 12)}`
  const worker = `${name}_worker`
  const messenger = `${name}_messenger`
  yield* Effect.acquireRelease(
    Effect.forEach([worker, messenger], (role) => rooms.run(`create role ${role} login password 'pass-5e55'`)),
    () =>
      Effect.forEach([worker, messenger], (role) =>
        Effect.andThen(rooms.run(`drop owned by ${role} cascade`), rooms.run(`drop role ${role}`))
      )
  )
  for (const table of ownTables) yield* rooms.run(`drop table ${table}`)
  yield* rooms.run(`do $$ declare t text; begin
    for t in select format('%I.%I', schemaname, tablename) from pg_tables where schemaname = 'messenger' loop
      execute format('alter table %s owner to ${messenger}', t);
    end loop;
  end $$`)
  yield* rooms.run(`alter schema messenger owner to ${messenger}`)
  yield* rooms.run(`grant usage on schema messenger to ${worker}`)
  yield* rooms.run(`grant select, insert, update, delete on all tables in schema messenger to ${worker}`)
  const url = new URL(rooms.env.DATABASE_URL)
  url.username = worker
  url.password = "pass-5e55"
  return { rooms, worker, env: { DATABASE_URL: url.href } }
})

describe("migrate", () => {
  it.live("applies once, then says that nothing is left to apply", () =>
    Effect.gen(function* () {
      const { env } = yield* Rooms.empty
      expect(yield* execute(["migrate"], env)).toMatchObject({ code: 0, stdout: applied })
      expect(yield* execute(["migrate"], env)).toMatchObject({ code: 0, stdout: "up to date, nothing to apply\n" })
    })
  )

  it.live("succeeds in each of five processes at once", () =>
    Effect.gen(function* () {
      const { env } = yield* Rooms.empty
      const all = yield* Effect.forEach([1, 2, 3, 4, 5], () => execute(["migrate"], env), { concurrency: 5 })
      expect(all.map(({ code, stderr }) => (code === 0 ? code : stderr))).toEqual([0, 0, 0, 0, 0])
      expect(all.filter(({ stdout }) => stdout === applied)).toHaveLength(1)
    })
  )

  it.live("succeeds when another process creates the schema at the same moment", () =>
    Effect.gen(function* () {
      const { sql, lockWait, env } = yield* Rooms.empty
      const migrating = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`create schema messenger`
          const fiber = yield* Effect.forkScoped(execute(["migrate"], env))
          yield* lockWait
          return fiber
        })
      )
      expect(yield* Fiber.join(migrating)).toMatchObject({ code: 0, stdout: applied })
    })
  )

  it.live("adds the worker's own tables to those of another owner (interface: Tables)", () =>
    Effect.gen(function* () {
      const { rooms, worker, env } = yield* foreignTables
      yield* rooms.run(`grant create on schema messenger to ${worker}`)
      yield* rooms.run("drop index messenger.ix_call_recordings_conference")
      const { code, stdout, stderr } = yield* execute(["migrate"], env)
      expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: applied })
      expect(stderr).toContain(
        "create index ix_call_recordings_conference on messenger.call_recordings (conference_id)"
      )
      expect(stderr).not.toContain("ix_conf_active")
      expect(stderr).not.toContain("ix_outbox_messages_pending")
      yield* rooms.insertDue(2)
      expect(yield* execute(["once"], env)).toMatchObject({ code: 0 })
      expect(yield* rooms.standing).toEqual([Rooms.ended(2)])
    })
  )

  it.live("says in one line which right is missing (interface: Tables)", () =>
    Effect.gen(function* () {
      const { env } = yield* foreignTables
      for (const command of ["migrate", "run"]) {
        const { code, stdout, stderr } = yield* execute([command], env)
        expect({ code, stdout }).toEqual({ code: 1, stdout: "" })
        expect(stderr).toMatch(/^conference-room-reaper: .*permission denied for schema messenger.*$/m)
        expect(stderr).not.toMatch(/^\s+at /m)
      }
    })
  )
})

describe("run --no-migrate", () => {
  it.live("lives on without tables, says so in each cycle, and works once they are there (T6)", () =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.empty
      const worker = yield* start(["run", "--no-migrate"], { ...rooms.env, REAPER_POLLING_INTERVAL: "200ms" })
      const missing = yield* worker.waitForLog("cycle not completed")
      expect(missing).toMatchObject({ level: "ERROR", outcome: "failed" })
      expect(missing.error).toContain("messenger.conference_sessions")
      yield* worker.waitForLog("cycle not completed", worker.said())
      expect((yield* worker.get("/health/live")).status).toBe(200)
      expect(yield* worker.metric("messenger_conf_reaper_errors_total")).toBeGreaterThan(1)
      expect(yield* execute(["migrate"], rooms.env)).toMatchObject({ code: 0 })
      yield* rooms.insertDue(2)
      yield* rooms.allEnded(2)
      expect(yield* rooms.standing).toEqual([Rooms.ended(2)])
    })
  )
})
