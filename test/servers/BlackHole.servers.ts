/**
 * The network carries nothing any more, in the middle of a cycle and without a reset: no side is told. The worker's cycle
 * ends in bounded time, the database frees what it held within LockTtl, another instance takes over (L3, L4, T6).
 */
import { describe, expect, it, vi } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { applicationName as lockConnection } from "../../src/layers/PgRunLock.ts"
import { execute, type LogLine, start } from "../e2e/Process.ts"
import * as Rooms from "../e2e/Rooms.ts"
import * as Network from "./Network.ts"

vi.setConfig({ testTimeout: 120_000 })

const limits = {
  REAPER_POLLING_INTERVAL: "300ms",
  REAPER_MAX_RUN_DURATION: "1s",
  REAPER_LOCK_TTL: "2s",
  // So that each statement's text is on the wire, for the network to be cut at it.
  DATABASE_PREPARED_STATEMENTS: "false"
}
/** MaxRunDuration, 10 s for a BEGIN or COMMIT that gets no answer, 1 s for giving back the lock, and a busy machine. */
const longestCycle = 1_000 + 10_000 + 1_000 + 6_000
/** LockTtl, from the last statement on; the batch's own is at most MaxRunDuration later. The rest is for a busy machine. */
const longestHold = 2_000 + 1_000 + 5_000

/** A worker whose network was cut at the trigger, three due rooms, and their database seen from elsewhere. */
const cutOff = Effect.fnUntraced(function* (trigger: Network.Trigger, args = ["run", "--no-migrate"]) {
  const rooms = yield* Rooms.fresh
  yield* rooms.insertDue(3)
  const network = yield* Network.before(rooms.env.DATABASE_URL)
  const cut = yield* Effect.forkChild(network.cutAt(trigger), { startImmediately: true })
  const worker = yield* start(args, { ...limits, DATABASE_URL: network.url })
  yield* Fiber.join(cut)
  return { rooms, network, worker }
})

const backends = (rooms: Rooms.Rooms) =>
  rooms.sql<{ pid: number }>`select pid from pg_stat_activity
    where datname = current_database() and application_name like 'conference-room-reaper%'`.pipe(
    Effect.orDie,
    Effect.map((rows) => rows.map(({ pid }) => pid))
  )

const nothingIsHeld = (rooms: Rooms.Rooms) =>
  rooms.until(
    "run lock and row locks are free",
    rooms.sql<{ free: boolean }>`select not exists (select from pg_stat_activity where datname = current_database()
      and application_name like 'conference-room-reaper%' and state <> 'idle') as free`.pipe(
      Effect.map(([row]) => row?.free === true)
    )
  )

const takeOver = Effect.fnUntraced(function* (rooms: Rooms.Rooms) {
  const [held] = yield* Effect.timed(nothingIsHeld(rooms))
  expect(Duration.toMillis(held)).toBeLessThan(longestHold)
  const { stdout, stderr } = yield* execute(["once", "--json"], rooms.env)
  expect(JSON.parse(stdout), stderr).toMatchObject({ outcome: "completed" })
  expect(yield* rooms.standing).toEqual([Rooms.ended(3)])
})

const isOver = (line: LogLine) => line.message === "cycle not completed"

describe.concurrent("a network that carries nothing any more", () => {
  it.live.each([
    { what: "the first message of a batch is lost", text: "BEGIN", lost: "the message" },
    { what: "a statement of a batch is lost", text: "update messenger.conference_sessions", lost: "the message" },
    { what: "the answer to it is lost", text: "update messenger.conference_sessions", lost: "its answer" },
    { what: "a commit is lost", text: "COMMIT", lost: "the message" },
    { what: "the answer to a commit is lost", text: "COMMIT", lost: "its answer" }
  ] as const)(
    "ends the cycle in bounded time and works on new connections afterwards when $what (L3, L4, T6)",
    (when) =>
      Effect.gen(function* () {
        const { rooms, network, worker } = yield* cutOff({ ...when, cut: "everything" })
        const before = yield* backends(rooms)
        yield* takeOver(rooms)
        const { durationMs } = yield* worker.waitForLog(isOver)
        expect(durationMs).toBeLessThan(longestCycle)
        yield* network.mend
        yield* rooms.insertDue(1, 4)
        yield* rooms.allEnded(4)
        yield* worker.waitForLog("cycle completed")
        yield* rooms.until(
          "the old connections are closed",
          Effect.map(backends(rooms), (pids) => !pids.some((pid) => before.includes(pid)))
        )
        expect(yield* rooms.standing).toEqual([Rooms.ended(4)])
      })
  )

  it.live("stops the cycle before its next batch when it cuts off the run lock alone (L3)", () =>
    Effect.gen(function* () {
      const { rooms, network, worker } = yield* cutOff({
        text: "update messenger.conference_sessions",
        lost: "its answer",
        cut: { applicationName: lockConnection }
      })
      yield* takeOver(rooms)
      const line = yield* worker.waitForLog(isOver)
      expect(line).toMatchObject({ outcome: "failed", error: expect.stringContaining("the run lock was lost") })
      expect(line.durationMs).toBeLessThan(longestCycle)
      yield* network.mend
      yield* rooms.insertDue(1, 4)
      yield* rooms.allEnded(4)
    })
  )

  it.live("does not keep a worker from starting once it carries again (T6)", () =>
    Effect.gen(function* () {
      const migrating = { text: "BEGIN", lost: "the message", cut: "everything" } as const
      const { rooms, network, worker } = yield* cutOff(migrating, ["run"])
      yield* worker.waitForLog("the database is away, waiting for it")
      yield* network.mend
      yield* rooms.allEnded(3)
    })
  )

  it.live("does not hold up a stop for long (L5)", () =>
    Effect.gen(function* () {
      const { rooms, worker } = yield* cutOff({ text: "BEGIN", lost: "the message", cut: "everything" })
      yield* worker.kill("SIGTERM")
      const { code, stderr } = yield* worker.ended
      expect(code, stderr).toBe(0)
      yield* takeOver(rooms)
    })
  )
})
