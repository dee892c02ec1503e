/** How a worker ends, by signal or by force: batches whole, the run lock free, exit code 0 where it was asked to stop. */
import { describe, expect, it, vi } from "@effect/vitest"
import { Clock, Duration, Effect } from "effect"
import * as Instant from "../../src/domain/Instant.ts"
import { before, conferenceId, provisioningSession } from "../support/Sessions.ts"
import { execute, type Process, start } from "./Process.ts"
import * as Proxy from "./Proxy.ts"
import * as Rooms from "./Rooms.ts"

vi.setConfig({ testTimeout: 60_000 })

const signals = ["SIGTERM", "SIGINT"] as const

/** Asks the worker to stop: it ends well, soon, and says so last. */
const stop = Effect.fnUntraced(function* (worker: Process, ...asked: ReadonlyArray<NodeJS.Signals>) {
  for (const signal of asked) yield* worker.kill(signal)
  const [took, { code, signal, stderr }] = yield* Effect.timed(worker.ended)
  expect({ code, signal }, stderr).toEqual({ code: 0, signal: null })
  expect(JSON.parse(stderr.trimEnd().split("\n").at(-1) ?? "")).toMatchObject({ level: "INFO", message: "stopped" })
  expect(Duration.toSeconds(took)).toBeLessThan(5)
})

/** A worker in the middle of a batch of 20 rooms, some of them written, none fixed. */
const inBatch = Effect.gen(function* () {
  const rooms = yield* Rooms.fresh
  yield* rooms.insertDue(20)
  yield* rooms.installGate
  yield* rooms.closeGate({ id: conferenceId(10) })
  const worker = yield* start(["run"], rooms.env)
  yield* rooms.midBatch
  expect(yield* rooms.runLockIsHeld).toBe(true)
  return { rooms, worker }
})

const closesTheRest = Effect.fnUntraced(function* (rooms: Rooms.Rooms) {
  yield* rooms.openGate
  yield* rooms.workersGone
  expect(yield* execute(["once", "--json"], rooms.env)).toMatchObject({ code: 0 })
  expect(yield* rooms.standing).toEqual([Rooms.ended(20)])
})

describe("a worker in the middle of a batch", () => {
  it.live("leaves neither half a batch nor the run lock when it is killed (T1, L3)", () =>
    Effect.gen(function* () {
      const { rooms, worker } = yield* inBatch
      yield* worker.kill("SIGKILL")
      expect(yield* worker.ended).toMatchObject({ signal: "SIGKILL" })
      const [took] = yield* Effect.timed(rooms.until("the run lock is free", rooms.runLockIsFree))
      // LockTtl, two minutes, had no part in it.
      expect(Duration.toSeconds(took)).toBeLessThan(5)
      expect(yield* rooms.standing).toEqual([Rooms.open(20)])
      yield* closesTheRest(rooms)
    })
  )

  it.live.each(signals)("undoes the batch, frees the run lock and ends with 0 on %s (L5)", (signal) =>
    Effect.gen(function* () {
      const { rooms, worker } = yield* inBatch
      yield* stop(worker, signal)
      expect(yield* rooms.runLockIsHeld).toBe(false)
      expect(yield* rooms.standing).toEqual([Rooms.open(20)])
      yield* closesTheRest(rooms)
    })
  )

  it.live("takes a second signal for the same wish (L5)", () =>
    Effect.gen(function* () {
      const { rooms, worker } = yield* inBatch
      yield* stop(worker, "SIGTERM", "SIGTERM", "SIGINT")
      expect(yield* rooms.runLockIsHeld).toBe(false)
      expect(yield* rooms.standing).toEqual([Rooms.open(20)])
    })
  )

  it.live("keeps the batch of the phase before (T1, L5)", () =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.fresh
      yield* rooms.insertDue(5)
      const now = Instant.fromMillis(yield* Clock.currentTimeMillis)
      const late = provisioningSession(6, before(now, "10 minutes"))
      yield* rooms.insert([late])
      yield* rooms.installGate
      yield* rooms.closeGate(late)
      const worker = yield* start(["run"], rooms.env)
      yield* rooms.midBatch
      yield* stop(worker, "SIGTERM")
      expect(yield* rooms.standing).toEqual([Rooms.ended(5), { ...Rooms.open(1), status: "Provisioning" }])
    })
  )
})

describe("a worker that waits", () => {
  it.live.each(signals)("ends with 0 on %s between two ticks (L5)", (signal) =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.fresh
      const worker = yield* start(["run"], rooms.env)
      yield* worker.waitForLog("cycle completed")
      yield* stop(worker, signal)
    })
  )

  it.live("ends with 0 on a signal that comes while the program still loads (L5)", () =>
    Effect.gen(function* () {
      // Sent by the process itself, at the first look for a package.
      const early = `import { registerHooks } from "node:module"; let sent = false
        registerHooks({ resolve: (name, context, next) => {
          if (name === "effect" && !sent) { sent = true; process.kill(process.pid, "SIGTERM") }
          return next(name, context)
        } })`
      const env = {
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(early)}`,
        DATABASE_URL: "postgres://127.0.0.1:1/nowhere"
      }
      expect(yield* execute(["run"], env)).toMatchObject({ code: 0, signal: null })
    })
  )

  it.live("ends with 0 on a signal as soon as it has said its first word (L5)", () =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.empty
      const worker = yield* start(["run"], rooms.env)
      yield* worker.waitForLog(() => true)
      yield* stop(worker, "SIGTERM")
    })
  )

  it.live("ends with 0 on a signal while the database is away (L5)", () =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.fresh
      const door = yield* Proxy.closedDoor(rooms.env.DATABASE_URL)
      const worker = yield* start(["run"], { DATABASE_URL: door.url })
      yield* worker.waitForLog("the database is away")
      yield* stop(worker, "SIGTERM")
    })
  )

  it.live("ends with 0 on a signal while another migrates (L5)", () =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.fresh
      yield* rooms.sql.withTransaction(
        Effect.gen(function* () {
          yield* rooms.run("lock table messenger.conference_reaper_migrations")
          const worker = yield* start(["run"], rooms.env)
          yield* rooms.lockWait
          yield* stop(worker, "SIGTERM")
        })
      )
    })
  )
})
