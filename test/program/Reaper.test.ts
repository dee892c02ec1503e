/** The loop (L1, L5, T6): when ticks start, and that nothing ends it but an interruption. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, type Duration, Effect, Fiber, Logger, Option } from "effect"
import { TestClock } from "effect/testing"
import * as Reaper from "../../src/program/Reaper.ts"
import { Liveness } from "../../src/services/Liveness.ts"
import { RunLock } from "../../src/services/RunLock.ts"
import type { StoreUnavailable } from "../../src/services/StoreError.ts"
import { program } from "../contract/CycleFixtures.ts"
import { Harness } from "../contract/Harness.ts"
import { series } from "../contract/Observed.ts"
import { unavailable } from "../fakes/Faults.ts"
import { start } from "../fakes/ManualCycleClock.ts"
import * as MemoryLayers from "../fakes/MemoryLayers.ts"
import { RecorderControl } from "../fakes/MemoryRecorder.ts"
import { conferenceId, before as earlier, emptySession, recording } from "../support/Sessions.ts"

interface Ticks {
  /** Seconds on the monotonic clock. */
  readonly starts: Array<number>
  atOnce: number
}

/** The loop over a run lock that is busy after what `onTick` does with tick number n. */
const startLoop = Effect.fnUntraced(function* (onTick: (n: number) => Effect.Effect<void, StoreUnavailable>) {
  const ticks: Ticks = { starts: [], atOnce: 0 }
  let running = 0
  const tryAcquire = Effect.gen(function* () {
    ticks.starts.push(Number((yield* Clock.monotonicTimeNanos) / 1_000_000n) / 1000)
    running += 1
    ticks.atOnce = Math.max(ticks.atOnce, running)
    yield* onTick(ticks.starts.length - 1)
    return Option.none()
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        running -= 1
      })
    )
  )
  const fiber = yield* Effect.forkChild(Effect.provideService(Reaper.run, RunLock, { tryAcquire }), {
    startImmediately: true
  })
  return { ticks, fiber }
})

const quick = () => Effect.void
const takes = (duration: Duration.Input) => () => Effect.sleep(duration)

const onMemory = Effect.provide(program(MemoryLayers.layer))

describe("Reaper", () => {
  it.effect("ticks at once, then one interval apart though each cycle takes time (L1, S1)", () =>
    Effect.gen(function* () {
      const { ticks } = yield* startLoop(takes("10 seconds"))
      assert.deepStrictEqual(ticks.starts, [0])
      yield* TestClock.adjust("125 seconds")
      assert.deepStrictEqual(ticks.starts, [0, 30, 60, 90, 120])
    }).pipe(onMemory)
  )

  it.effect("follows an overrun at once, makes nothing up and spaces anew from there (L1)", () =>
    Effect.gen(function* () {
      const { ticks } = yield* startLoop((n) => (n === 1 ? Effect.sleep("75 seconds") : Effect.void))
      yield* TestClock.adjust("200 seconds")
      assert.deepStrictEqual(ticks.starts, [0, 30, 105, 135, 165, 195])
    }).pipe(onMemory)
  )

  it.effect("runs back to back while every cycle overruns, never two at once (L1)", () =>
    Effect.gen(function* () {
      const { ticks } = yield* startLoop(takes("75 seconds"))
      yield* TestClock.adjust("300 seconds")
      assert.deepStrictEqual(ticks.starts, [0, 75, 150, 225, 300])
      assert.strictEqual(ticks.atOnce, 1)
    }).pipe(onMemory)
  )

  it.effect("takes a cycle that lasts exactly one interval for no overrun (L1)", () =>
    Effect.gen(function* () {
      const { ticks } = yield* startLoop(takes("30 seconds"))
      yield* TestClock.adjust("90 seconds")
      assert.deepStrictEqual(ticks.starts, [0, 30, 60, 90])
    }).pipe(onMemory)
  )

  const failures: ReadonlyArray<readonly [string, Effect.Effect<void, StoreUnavailable>]> = [
    ["a failure", Effect.fail(unavailable("lock"))],
    ["a defect", Effect.die(new Error("a bug of ours"))],
    ["a thrown error", Effect.sync(() => JSON.parse("{"))],
    ["an interruption from inside", Effect.interrupt]
  ]
  for (const [what, failure] of failures) {
    it.effect(`is on time with the next tick after ${what}, and counts it once (T6)`, () =>
      Effect.gen(function* () {
        const before = yield* series
        const { ticks } = yield* startLoop((n) => (n === 1 ? failure : Effect.void))
        yield* TestClock.adjust("90 seconds")
        assert.deepStrictEqual(ticks.starts, [0, 30, 60, 90])
        const after = yield* series
        assert.strictEqual(after.get("errors_total") - before.get("errors_total"), 1)
        assert.strictEqual(after.get("lock_busy_total") - before.get("lock_busy_total"), 3)
      }).pipe(onMemory)
    )
  }

  for (const [what, failure] of [
    ["a defect", Effect.die("a bug of ours")],
    ["an interruption from inside", Effect.interrupt]
  ] as const) {
    it.effect(`is on time after ${what} outside of the cycle (T6)`, () =>
      Effect.gen(function* () {
        const liveness = yield* Liveness
        let beats = 0
        const beat = Effect.suspend(() => (++beats === 2 ? failure : Effect.void))
        const { ticks } = yield* startLoop(quick).pipe(Effect.provideService(Liveness, { ...liveness, beat }))
        yield* TestClock.adjust("90 seconds")
        assert.deepStrictEqual(ticks.starts, [0, 60, 90])
      }).pipe(onMemory)
    )
  }

  it.effect("goes on while the logger throws (T6)", () =>
    Effect.gen(function* () {
      const broken = Logger.make(() => {
        throw new Error("no space left on device")
      })
      const { ticks } = yield* startLoop(quick).pipe(Effect.provide(Logger.layer([broken])))
      yield* TestClock.adjust("90 seconds")
      assert.deepStrictEqual(ticks.starts, [0, 30, 60, 90])
    }).pipe(onMemory)
  )

  for (const hours of [-1, 1]) {
    it.effect(`is on time while the system's clock is stepped by ${hours} h (L1)`, () =>
      Effect.gen(function* () {
        const clock = yield* Clock.Clock
        let step = 0
        const wall: Clock.Clock = {
          ...clock,
          currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + step,
          currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + step)
        }
        const { ticks } = yield* startLoop(quick).pipe(Effect.provideService(Clock.Clock, wall))
        yield* TestClock.adjust("40 seconds")
        step = hours * 3_600_000
        yield* TestClock.adjust("60 seconds")
        assert.deepStrictEqual(ticks.starts, [0, 30, 60, 90])
      }).pipe(onMemory)
    )
  }

  it.effect("ends at once when it is interrupted, asleep or in mid-cycle (L5)", () =>
    Effect.gen(function* () {
      const asleep = yield* startLoop(quick)
      yield* Fiber.interrupt(asleep.fiber)
      const reached = yield* Deferred.make<void>()
      const busy = yield* startLoop(() => Effect.andThen(Deferred.succeed(reached, undefined), Effect.never))
      yield* Deferred.await(reached)
      yield* Fiber.interrupt(busy.fiber)
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual([asleep.ticks.starts.length, busy.ticks.starts.length], [1, 1])
    }).pipe(onMemory)
  )

  it.effect("is delayed by no recorder that never answers: all rooms close, the next tick is on time (R10)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const recorder = yield* RecorderControl
      const released = yield* Deferred.make<void>()
      yield* recorder.answerWith(() => Effect.as(Deferred.await(released), "stopped"))
      const numbers = Array.from({ length: 100 }, (_, i) => i + 1)
      yield* harness.insertSessions(numbers.map((n) => emptySession(n, earlier(start, "1 hour"))))
      yield* harness.insertRecordings(numbers.map((n) => recording(conferenceId(n), n, start)))
      const loop = yield* Effect.forkChild(Reaper.run, { startImmediately: true })
      yield* TestClock.adjust("70 seconds")
      const runs = yield* harness.runs
      assert.deepStrictEqual(
        runs.map((run) => [run.outcome, run.durationMs]),
        [0, 1, 2].map(() => ["completed", 0])
      )
      assert.isTrue((yield* harness.sessions).every((row) => row.status === "Ended"))
      assert.isAtMost((yield* recorder.requests).length, 4, "a few at a time")
      yield* Fiber.interrupt(loop)
      yield* Deferred.succeed(released, undefined)
    }).pipe(onMemory)
  )
})
