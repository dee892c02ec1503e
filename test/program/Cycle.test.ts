/** The edges of a cycle in memory: run lock, lost lock, MaxRunDuration, clock skew (L2, L3, L4, L7). */
import { assert, layer, type Vitest } from "@effect/vitest"
import { Duration, Effect, Fiber, type Layer } from "effect"
import { TestClock } from "effect/testing"
import * as Instant from "../../src/domain/Instant.ts"
import * as SystemCycleClock from "../../src/layers/SystemCycleClock.ts"
import * as Cycle from "../../src/program/Cycle.ts"
import { ReaperOptions } from "../../src/services/ReaperOptions.ts"
import { RunLock } from "../../src/services/RunLock.ts"
import { options, program } from "../contract/CycleFixtures.ts"
import { closedPhases, fromDueRooms, names } from "../contract/FaultFixtures.ts"
import { Harness } from "../contract/Harness.ts"
import { observed } from "../contract/Observed.ts"
import { unavailable } from "../fakes/Faults.ts"
import { start } from "../fakes/ManualCycleClock.ts"
import { MemoryDatabase } from "../fakes/MemoryDatabase.ts"
import * as MemoryLayers from "../fakes/MemoryLayers.ts"
import { RunLockControl } from "../fakes/MemoryRunLock.ts"
import { before, conferenceId, emptySession, microsecondsAfter } from "../support/Sessions.ts"

type Memory = Layer.Success<ReturnType<typeof program<Layer.Success<typeof MemoryLayers.layer>, never>>>
type It = Vitest.MethodsNonLive<Memory>

layer(program(MemoryLayers.layer))("Cycle, in memory", (it) => {
  runLock(it)
  maxRunDuration(it)
  shares(it)
  clockSkew(it)
})

const runLock = (it: It): void => {
  it.effect("skips the tick while another holds the run lock, counts it apart and reports no old gauge (L2)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const { faults } = yield* MemoryDatabase
      yield* faults.failNext("claim")
      assert.strictEqual((yield* observed(Cycle.run)).value("active_backlog"), 1)
      const runs = (yield* harness.runs).length
      yield* harness.insertSessions([emptySession(9, before(start, options.emptyRoomGrace))])
      const other = yield* RunLock
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* other.tryAcquire
          const tick = yield* observed(Cycle.run)
          assert.strictEqual(tick.result.outcome, "lock-busy")
          assert.strictEqual(tick.result.asOf, start)
          assert.match(tick.result.jobRunId, /^[0-9a-f-]{36}$/)
          assert.deepStrictEqual(
            ["lock_busy_total", "run_total", "errors_total", "cycle_duration_seconds"].map(tick.moved),
            [1, 0, 0, 0]
          )
          assert.deepStrictEqual([tick.value("active_backlog"), tick.value("poison_items")], [0, 0])
          assert.deepStrictEqual(
            tick.lines.map((line) => [line.level, line.annotations.correlationId]),
            [["Info", tick.result.jobRunId]]
          )
        })
      )
      assert.strictEqual((yield* harness.runs).length, runs, "the history tells of cycles, not of skipped ticks")
      assert.strictEqual((yield* Cycle.run).emptyTimeoutCount, 2)
    }).pipe(fromDueRooms)
  )

  it.effect("stops before its next batch when the run lock is lost between phases (L3)", () =>
    Effect.gen(function* () {
      const { faults } = yield* MemoryDatabase
      const control = yield* RunLockControl
      yield* faults.before("appendClosings", control.lose)
      const cycle = yield* observed(Cycle.run)
      assert.deepStrictEqual(yield* closedPhases, ["empty-room"])
      assert.deepStrictEqual([cycle.result.outcome, cycle.result.emptyTimeoutCount], ["failed", 1])
      assert.match(cycle.result.error ?? "", /run lock was lost/)
      assert.deepStrictEqual([cycle.moved("errors_total"), cycle.moved("run_total")], [1, 1])
      assert.strictEqual((yield* Cycle.run).outcome, "completed")
      assert.deepStrictEqual(yield* closedPhases, names)
    }).pipe(fromDueRooms)
  )

  it.effect("leaves the run lock free after a cycle that failed or was interrupted at any step (L2, L5)", () =>
    Effect.gen(function* () {
      const { faults } = yield* MemoryDatabase
      const control = yield* RunLockControl
      for (const operation of ["confirm", "claim", "apply", "append", "countSkippedLocked", "backlog"] as const) {
        yield* faults.before(operation, Effect.die("a bug of ours"))
        yield* Cycle.run
        assert.isFalse(yield* control.isHeld, `after a defect in ${operation}`)
        yield* faults.before(operation, Effect.never)
        const fiber = yield* Effect.forkChild(Cycle.run, { startImmediately: true })
        yield* Effect.yieldNow
        yield* Fiber.interrupt(fiber)
        assert.isFalse(yield* control.isHeld, `after an interruption in ${operation}`)
      }
    }).pipe(fromDueRooms)
  )
}

/** Runs a cycle while the clock goes on by as much. */
const cycleOver = Effect.fnUntraced(function* (duration: Duration.Input) {
  const fiber = yield* Effect.forkChild(observed(Cycle.run), { startImmediately: true })
  yield* TestClock.adjust(duration)
  return yield* Fiber.join(fiber)
})

const maxRunDuration = (it: It): void => {
  it.effect("rolls back the batch that runs past MaxRunDuration, and the remaining phases wait (L4)", () =>
    Effect.gen(function* () {
      const { faults } = yield* MemoryDatabase
      yield* faults.before("append", Effect.sleep("1 hour"), 2)
      const first = yield* cycleOver("30 seconds")
      assert.deepStrictEqual(yield* closedPhases, [])
      assert.deepStrictEqual([first.result.outcome, first.result.durationMs], ["timed-out", 30_000])
      assert.strictEqual(first.result.error, "stopped at MaxRunDuration in empty-room")
      assert.strictEqual(first.moved("run_total"), 1)
      assert.deepStrictEqual(first.saying("conference reaped"), [])
      yield* faults.clear
      assert.strictEqual((yield* Cycle.run).outcome, "completed")
      assert.deepStrictEqual(yield* closedPhases, names)
    }).pipe(fromDueRooms)
  )

  it.effect("begins no batch once MaxRunDuration is over (L4)", () =>
    Effect.gen(function* () {
      const { faults } = yield* MemoryDatabase
      yield* faults.before("confirm", Effect.sleep("31 seconds"))
      const cycle = yield* cycleOver("1 minute")
      assert.deepStrictEqual(yield* closedPhases, [])
      assert.strictEqual(cycle.result.outcome, "timed-out")
    }).pipe(fromDueRooms)
  )

  it.effect("counts the batch whose commit is under way when MaxRunDuration is over (L4)", () =>
    Effect.gen(function* () {
      const { faults } = yield* MemoryDatabase
      yield* faults.before("commit", Effect.sleep("31 seconds"))
      const cycle = yield* cycleOver("1 minute")
      assert.deepStrictEqual(yield* closedPhases, ["empty-room"])
      assert.deepStrictEqual([cycle.result.outcome, cycle.result.emptyTimeoutCount], ["timed-out", 1])
      assert.strictEqual(cycle.moved('items_total{outcome="empty_timeout"}'), 1)
      assert.strictEqual(cycle.saying("conference reaped").length, 1)
    }).pipe(fromDueRooms)
  )

  it.effect("is not stopped by a look-up of recordings that hangs after the commit (L4, R10)", () =>
    Effect.gen(function* () {
      const { faults } = yield* MemoryDatabase
      let uses = 0
      yield* faults.before(
        "details",
        Effect.suspend(() => (++uses === 2 ? Effect.sleep("1 hour") : Effect.void)),
        9
      )
      const cycle = yield* cycleOver("30 seconds")
      assert.deepStrictEqual(yield* closedPhases, names)
      assert.strictEqual(cycle.result.outcome, "completed")
    }).pipe(fromDueRooms)
  )
}

const shares = (it: It): void => {
  it.effect("commits what it has when many poison rows bring it near MaxRunDuration (L4, T5)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const { faults } = yield* MemoryDatabase
      const grace = before(start, options.emptyRoomGrace)
      const poison = Array.from({ length: 99 }, (_, i) => conferenceId(i + 101))
      yield* harness.insertSessions(poison.map((id, i) => ({ ...emptySession(i + 101, grace), id })))
      yield* harness.refuse("apply", poison)
      yield* faults.before("apply", Effect.sleep("1 second"), Number.POSITIVE_INFINITY)
      const cycle = yield* cycleOver("30 seconds")
      assert.strictEqual(cycle.result.outcome, "completed")
      assert.isAbove((yield* harness.poison).length, 0)
      assert.strictEqual(cycle.moved("errors_total"), cycle.result.poisonCount)
    }).pipe(fromDueRooms)
  )

  it.effect("stops topping up in time when there is no end of poison, and records what it met (L4, T5)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const { faults } = yield* MemoryDatabase
      const since = before(start, "1 hour")
      const unfit = Array.from({ length: 400 }, (_, i) => emptySession(i + 101, since, { startedAt: null }))
      yield* harness.insertSessions(unfit)
      yield* faults.before("claim", Effect.sleep("1 second"), Number.POSITIVE_INFINITY)
      const cycle = yield* cycleOver("30 seconds")
      assert.deepStrictEqual([cycle.result.outcome, cycle.result.staleTimeoutCount], ["completed", 1])
      assert.isAbove((yield* harness.poison).length, 50)
      assert.isBelow((yield* harness.poison).length, 400)
    }).pipe(Effect.provideService(ReaperOptions, { ...options, batchSize: 10 }), fromDueRooms)
  )

  it.effect("leaves every phase its turn when the one before it is slow from poison (L4, T5)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const { faults } = yield* MemoryDatabase
      const grace = before(start, options.emptyRoomGrace)
      const poison = Array.from({ length: 99 }, (_, i) => conferenceId(i + 101))
      yield* harness.insertSessions(poison.map((id, i) => ({ ...emptySession(i + 101, grace), id })))
      yield* harness.refuse("apply", poison)
      yield* faults.before("apply", Effect.sleep("1 second"), Number.POSITIVE_INFINITY)
      const cycle = yield* cycleOver("30 seconds")
      assert.deepStrictEqual([cycle.result.provisionFailedCount, cycle.result.staleTimeoutCount], [1, 1])
    }).pipe(fromDueRooms)
  )
}

/** A cycle whose AsOf is the system's own time, the database's clock being ahead by `offset`. */
const skewed = (offset: Duration.Duration, maxClockSkew: Duration.Duration) =>
  Effect.gen(function* () {
    const control = yield* RunLockControl
    yield* TestClock.setTime(Instant.toMillis(start))
    yield* control.setDatabaseClockOffset(offset)
    const cycle = yield* observed(Cycle.run).pipe(
      Effect.provide(SystemCycleClock.layer),
      Effect.provideService(ReaperOptions, { ...options, maxClockSkew })
    )
    yield* control.setDatabaseClockOffset(Duration.zero)
    return cycle
  })

const limit = Duration.seconds(5)

const clockSkew = (it: It): void => {
  for (const [offset, direction] of [
    [Duration.micros(5_000_001n), "behind"],
    [Duration.micros(-5_000_001n), "ahead of"]
  ] as const) {
    it.effect(`refuses the cycle when this node's clock is ${direction} the database's beyond the limit (L7)`, () =>
      Effect.gen(function* () {
        const harness = yield* Harness
        const cycle = yield* skewed(offset, limit)
        assert.deepStrictEqual(yield* closedPhases, [])
        assert.strictEqual(cycle.result.outcome, "refused")
        assert.deepStrictEqual(["refused_total", "errors_total", "run_total"].map(cycle.moved), [1, 1, 0])
        assert.strictEqual(cycle.value("clock_skew_seconds"), -Duration.toSeconds(offset))
        const [line] = cycle.saying("cycle refused")
        const [run] = yield* harness.runs
        for (const text of [line?.annotations.reason, run?.error, cycle.result.error]) {
          assert.match(String(text), new RegExp(`5\\.000 s ${direction}.*5 s are allowed.*REAPER_MAX_CLOCK_SKEW`))
        }
      }).pipe(fromDueRooms)
    )
  }

  for (const offset of [5, -5, 4.999, -4.999, 0]) {
    it.effect(`works with a database clock ${offset} s ahead: that is within the limit (L7)`, () =>
      Effect.gen(function* () {
        const cycle = yield* skewed(Duration.seconds(offset), limit)
        assert.strictEqual(cycle.result.outcome, "completed")
        assert.strictEqual(cycle.value("clock_skew_seconds"), -offset)
      }).pipe(fromDueRooms)
    )
  }

  it.effect("works with any skew when the limit is 0 (L7)", () =>
    Effect.gen(function* () {
      const cycle = yield* skewed(Duration.days(-3), Duration.zero)
      assert.strictEqual(cycle.result.outcome, "completed")
      assert.strictEqual(cycle.value("clock_skew_seconds"), 3 * 86_400)
    }).pipe(fromDueRooms)
  )

  it.effect("takes no evidence and no backlog by a clock that was refused (L7, W7)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* Cycle.run
      const evidence = yield* harness.closings
      // Full of life, and due only by a clock that runs ahead.
      yield* harness.insertSessions([emptySession(9, microsecondsAfter(start, -1n))])
      const control = yield* RunLockControl
      yield* TestClock.setTime(Instant.toMillis(start) + 200 * 86_400_000)
      yield* control.setDatabaseClockOffset(Duration.days(-200))
      const cycle = yield* observed(Cycle.run).pipe(
        Effect.provide(SystemCycleClock.layer),
        Effect.provideService(ReaperOptions, { ...options, maxClockSkew: limit })
      )
      yield* control.setDatabaseClockOffset(Duration.zero)
      assert.strictEqual(cycle.result.outcome, "refused")
      assert.deepStrictEqual(yield* harness.closings, evidence, "evidence is not past its time")
      assert.strictEqual(cycle.value("active_backlog"), 0, "the room is not overdue")
    }).pipe(fromDueRooms)
  )

  it.effect("goes through a failed acquisition as a failed cycle that is no run (L2, T6)", () =>
    Effect.gen(function* () {
      const { faults } = yield* MemoryDatabase
      yield* faults.failNext("lock", unavailable("lock", "too many clients (SQLSTATE 53300)"))
      const cycle = yield* observed(Cycle.run)
      assert.deepStrictEqual(
        [cycle.result.outcome, cycle.moved("errors_total"), cycle.moved("run_total")],
        ["failed", 1, 0]
      )
      assert.match(cycle.result.error ?? "", /53300/)
    }).pipe(fromDueRooms)
  )
}
