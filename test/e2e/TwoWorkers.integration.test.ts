/** Two worker processes on one database: with the run lock, without it, and with one of them frozen (L2, L3, T2). */
import { join } from "node:path"
import { describe, expect, it, vi } from "@effect/vitest"
import { Duration, Effect, Schedule } from "effect"
import { lockKey } from "../../src/layers/PgRunLock.ts"
import { conferenceId } from "../support/Sessions.ts"
import { execute, type Process, start } from "./Process.ts"
import * as Rooms from "./Rooms.ts"

vi.setConfig({ testTimeout: 60_000 })

const lockBusy = "messenger_conf_reaper_lock_busy_total"
const runs = "messenger_conf_reaper_run_total"
const errors = "messenger_conf_reaper_errors_total"
const reaped = "conference reaped"

const sum = Effect.fnUntraced(function* (workers: ReadonlyArray<Process>, ...series: ReadonlyArray<string>) {
  const values = yield* Effect.forEach(workers, (worker) => Effect.forEach(series, worker.metric))
  return values.flat().reduce<number>((total, value) => total + (value ?? Number.NaN), 0)
})

/** A full batch takes longer here than an interval, so that the two do meet. 60 rooms are due at once, 60 trickle in. */
const busyDatabase = Effect.gen(function* () {
  const rooms = yield* Rooms.fresh
  yield* rooms.run(`create function test_slow() returns trigger language plpgsql as $$ begin
    perform pg_sleep(0.025); return new; end $$`)
  yield* rooms.run(`create trigger slow before update on messenger.conference_sessions
    for each row execute function test_slow()`)
  yield* rooms.insertDue(60)
  let first = 61
  const trickle = Effect.suspend(() => {
    first += 5
    return rooms.insertDue(5, first - 5)
  }).pipe(Effect.repeat({ times: 11, schedule: Schedule.spaced("100 millis") }))
  const env = { ...rooms.env, REAPER_POLLING_INTERVAL: "200ms", REAPER_BATCH_SIZE: "10" }
  return { rooms, env, trickle, total: 120 }
})

describe("two workers", () => {
  it.live("close each room once, and run or skip each tick, under the run lock (L2)", () =>
    Effect.gen(function* () {
      const { rooms, env, trickle, total } = yield* busyDatabase
      const workers = yield* Effect.all([start(["run"], env), start(["run"], env)])
      for (const worker of workers) yield* worker.waitForLog("the schema is up to date")
      yield* trickle
      yield* rooms.allEnded(total)
      expect(yield* rooms.standing).toEqual([Rooms.ended(total)])
      const counted = () => workers.reduce((n, { count }) => n + count(reaped), 0)
      yield* rooms.until(
        "each closing is logged",
        Effect.sync(() => counted() >= total)
      )
      expect(counted()).toBe(total)
      const ticks = () => workers.reduce((n, { count }) => n + count("cycle started") + count("tick skipped"), 0)
      const before = ticks()
      const sums = yield* sum(workers, runs, lockBusy)
      expect(sums).toBeGreaterThanOrEqual(before)
      yield* rooms.until(
        "each counted tick is logged",
        Effect.sync(() => ticks() >= sums)
      )
      expect(yield* sum(workers, lockBusy)).toBeGreaterThan(0)
      expect(yield* sum(workers, errors)).toBe(0)
    })
  )

  it.live("close each room once with the run lock bypassed (T2, W6)", () =>
    Effect.gen(function* () {
      const { rooms, env, trickle, total } = yield* busyDatabase
      const program = join(import.meta.dirname, "UnlockedWorker.ts")
      const workers = yield* Effect.all([start([], env, program), start([], env, program)])
      for (const worker of workers) yield* worker.waitForLog("cycle started")
      yield* trickle
      yield* rooms.allEnded(total)
      expect(yield* rooms.standing).toEqual([Rooms.ended(total)])
      const counts = () => workers.map(({ count }) => count(reaped))
      yield* rooms.until(
        "each closing is logged",
        Effect.sync(() => counts().reduce((a, b) => a + b) >= total)
      )
      expect(counts().reduce((a, b) => a + b)).toBe(total)
      // Both had their share at the same time; that they met shows in the rows that one had locked.
      for (const count of counts()) expect(count).toBeGreaterThan(0)
      expect(yield* sum(workers, "messenger_conf_reaper_skip_locked_total")).toBeGreaterThan(0)
      expect(yield* sum(workers, errors, lockBusy)).toBe(0)
      expect(yield* rooms.sql`select * from messenger.conference_reaper_poison`).toEqual([])
    })
  )
})

describe("a frozen worker", () => {
  it.live("has lost run lock and row locks after LockTtl, does no harm when it wakes, and works on (L3)", () =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.fresh
      const env = {
        ...rooms.env,
        REAPER_POLLING_INTERVAL: "300ms",
        REAPER_LOCK_TTL: "2s",
        REAPER_MAX_RUN_DURATION: "1s"
      }
      const frozen = yield* start(["run"], env)
      yield* frozen.waitForLog("cycle completed")
      const other = yield* start(["run"], env)
      yield* other.waitForLog("the schema is up to date")
      yield* other.kill("SIGSTOP")
      yield* rooms.installGate
      yield* rooms.closeGate({ id: conferenceId(5) })
      yield* rooms.insertDue(10)
      yield* rooms.midBatch
      yield* frozen.kill("SIGSTOP")
      yield* rooms.openGate
      expect(yield* rooms.runLockIsHeld).toBe(true)
      const [took] = yield* Effect.timed(Effect.andThen(other.kill("SIGCONT"), rooms.allEnded(10)))
      expect(Duration.toSeconds(took)).toBeLessThan(2 + 0.3 + 8)
      yield* other.waitForCount(reaped, 10)
      const said = frozen.said()
      yield* frozen.kill("SIGCONT")
      yield* frozen.waitForLog("cycle not completed", said)
      yield* other.kill("SIGTERM")
      yield* other.ended
      expect(frozen.count(reaped)).toBe(0)
      yield* rooms.insertDue(3, 11)
      yield* rooms.allEnded(13)
      expect(yield* rooms.standing).toEqual([Rooms.ended(13)])
      yield* frozen.waitForCount(reaped, 3)
    })
  )
})

describe("the run lock", () => {
  it.live("lives beside other advisory locks, and is free between two cycles (L2)", () =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.fresh
      yield* rooms.insertDue(2)
      const key = BigInt(lockKey)
      yield* rooms.sql.withTransaction(
        Effect.gen(function* () {
          yield* rooms.run(`select pg_advisory_xact_lock(1), pg_advisory_xact_lock(42),
            pg_advisory_xact_lock(${key >> 32n}, ${key & 0xffffffffn})`)
          const worker = yield* start(["run"], rooms.env)
          yield* worker.waitForLog("cycle completed")
          expect(yield* rooms.runLockIsHeld).toBe(false)
          expect(yield* execute(["once"], rooms.env)).toMatchObject({ code: 0 })
        })
      )
      expect(yield* rooms.standing).toEqual([Rooms.ended(2)])
    })
  )
})
