/** The run lock of real processes behind PgBouncer in transaction mode (L2, L3), where a session has no backend of its own. */
import { describe, expect, it, vi } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { inject } from "vitest"
import { type Process, start } from "../e2e/Process.ts"
import * as Rooms from "../e2e/Rooms.ts"
import { conferenceId } from "../support/Sessions.ts"
import * as PgBouncer from "./PgBouncer.ts"

vi.setConfig({ testTimeout: 120_000 })

/** Rooms, PgBouncer before their database with `poolSize` connections, and the environment of a worker behind it. */
const behindPgBouncer = Effect.fnUntraced(function* (poolSize: number) {
  const rooms = yield* Rooms.fresh
  yield* rooms.installGate
  const pgBouncer = yield* PgBouncer.before(inject("pgUrl"), poolSize)
  const url = new URL(pgBouncer.url)
  url.pathname = new URL(rooms.env.DATABASE_URL).pathname
  return { rooms, pgBouncer, env: { DATABASE_URL: url.href, DATABASE_PREPARED_STATEMENTS: "false" } }
})

const run = (environment: Record<string, string>) => start(["run", "--no-migrate"], environment)

/** A due room whose batch waits for the gate. */
const insertHeld = Effect.fnUntraced(function* (rooms: Rooms.Rooms, n: number) {
  yield* rooms.closeGate({ id: conferenceId(n) })
  yield* rooms.insertDue(1, n)
  yield* rooms.midBatch
})

const advisoryLocks = (rooms: Rooms.Rooms) =>
  rooms.sql<{ locks: number; idle: number }>`select
      (select count(*)::int from pg_locks where locktype = 'advisory'
        and database = (select oid from pg_database where datname = current_database())) as locks,
      (select count(*)::int from pg_stat_activity where datname = current_database()
        and application_name like 'conference-room-reaper%') as idle`.pipe(
    Effect.orDie,
    Effect.map(([row]) => row)
  )

const findsItHeld = (worker: Process) => Effect.as(worker.waitForLog("tick skipped", worker.said()), worker)

describe.concurrent("the run lock behind PgBouncer", () => {
  it.live("leaves no advisory lock behind, and is free at once when its holder is killed in mid-cycle (L2, L3)", () =>
    Effect.gen(function* () {
      const { rooms, env } = yield* behindPgBouncer(4)
      // Far longer than this test waits for anything: what is freed in it was freed by the holder's end.
      const limits = { REAPER_MAX_RUN_DURATION: "5m", REAPER_LOCK_TTL: "10m" }
      const workers = [
        yield* run({ ...env, ...limits, REAPER_POLLING_INTERVAL: "400ms" }),
        yield* run({ ...env, ...limits, REAPER_POLLING_INTERVAL: "550ms" })
      ]
      for (let cycle = 1; cycle <= 5; cycle++) {
        for (const worker of workers) yield* worker.waitForCount("cycle completed", cycle)
        yield* rooms.until("the lock is free between cycles", rooms.runLockIsFree)
      }
      yield* insertHeld(rooms, 1)
      const survivor = yield* Effect.raceAllFirst(workers.map(findsItHeld))
      for (const holder of workers.filter((worker) => worker !== survivor)) {
        yield* holder.kill("SIGKILL")
        yield* holder.ended
      }
      yield* survivor.waitForCount("cycle completed", survivor.count("cycle completed") + 5)
      yield* rooms.openGate
      yield* rooms.allEnded(1)
      expect(yield* rooms.standing).toEqual([Rooms.ended(1)])
      yield* survivor.kill("SIGTERM")
      expect((yield* survivor.ended).code).toBe(0)
      const left = yield* advisoryLocks(rooms)
      expect(left?.locks).toBe(0)
      // PgBouncer still has the connections that the lock was held on.
      expect(left?.idle).toBeGreaterThan(0)
    })
  )

  it.live("is taken from a frozen holder within LockTtl (L3)", () =>
    Effect.gen(function* () {
      const { rooms, env } = yield* behindPgBouncer(4)
      const limits = { REAPER_MAX_RUN_DURATION: "1s", REAPER_LOCK_TTL: "2s", REAPER_POLLING_INTERVAL: "300ms" }
      const frozen = yield* run({ ...env, ...limits })
      yield* insertHeld(rooms, 1)
      yield* frozen.kill("SIGSTOP")
      const [held] = yield* Effect.timed(rooms.until("the lock is free", rooms.runLockIsFree))
      // LockTtl and time for a busy machine.
      expect(Duration.toMillis(held)).toBeLessThan(2_000 + 3_000)
      yield* rooms.openGate
      const other = yield* run({ ...env, ...limits })
      yield* rooms.allEnded(1)
      yield* other.waitForLog("cycle completed")
      yield* frozen.kill("SIGCONT")
      yield* frozen.waitForLog("cycle not completed")
      yield* frozen.waitForLog("cycle completed", frozen.said())
      expect(yield* rooms.standing).toEqual([Rooms.ended(1)])
    })
  )

  it.live("fits together with a batch into a pool of two, and nobody who waits for one is stuck (L2)", () =>
    Effect.gen(function* () {
      const { rooms, pgBouncer, env } = yield* behindPgBouncer(2)
      yield* rooms.closeGate({ id: conferenceId(1) })
      yield* rooms.insertDue(3)
      const first = yield* start(["once", "--json"], env)
      yield* rooms.midBatch
      // The pool is used up, so this one waits in PgBouncer's queue until the first has done.
      const logins = pgBouncer.logins()
      const second = yield* start(["once", "--json"], env)
      yield* rooms.until(
        "the second has come",
        Effect.sync(() => pgBouncer.logins() > logins)
      )
      yield* rooms.openGate
      for (const worker of [first, second]) {
        const { code, stderr } = yield* worker.ended
        expect(code, stderr).toBe(0)
      }
      expect(yield* rooms.standing).toEqual([Rooms.ended(3)])
    })
  )

  it.live("is lost with PgBouncer in mid-cycle, and had again when that is back (T6)", () =>
    Effect.gen(function* () {
      const { rooms, pgBouncer, env } = yield* behindPgBouncer(4)
      const worker = yield* run({ ...env, REAPER_POLLING_INTERVAL: "300ms" })
      yield* worker.waitForLog("cycle completed")
      yield* insertHeld(rooms, 1)
      yield* pgBouncer.stop
      yield* worker.waitForLog("cycle not completed")
      yield* rooms.until("the lock is free", rooms.runLockIsFree)
      yield* rooms.openGate
      yield* pgBouncer.start
      yield* rooms.allEnded(1)
      yield* worker.waitForLog("cycle completed", worker.said())
      expect(yield* rooms.standing).toEqual([Rooms.ended(1)])
    })
  )
})
