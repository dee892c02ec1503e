/** Start-up with the database away: the worker waits, alive and in words; what waiting cannot mend is final. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as StartUp from "../../src/program/StartUp.ts"
import * as Liveness from "../../src/services/Liveness.ts"
import { defaults, ReaperOptions } from "../../src/services/ReaperOptions.ts"
import { Store } from "../../src/services/Store.ts"
import { StoreUnavailable } from "../../src/services/StoreError.ts"
import { collectLines, type Line } from "../contract/Observed.ts"
import { unavailable } from "../fakes/Faults.ts"

const liveness = Liveness.layer.pipe(Layer.provide(Layer.succeed(ReaperOptions, defaults)))

const starting = Effect.fnUntraced(function* (failures: number, error: StoreUnavailable = unavailable("ping")) {
  const lines: Array<Line> = []
  const tries: Array<number> = []
  const ping = Effect.gen(function* () {
    tries.push(yield* Clock.currentTimeMillis)
    if (tries.length <= failures) return yield* error
  })
  const fiber = yield* StartUp.databaseAnswers.pipe(
    Effect.provideService(Store, { ping }),
    Effect.provide(collectLines(lines)),
    Effect.forkChild({ startImmediately: true })
  )
  return { lines, tries, fiber, pauses: () => tries.slice(1).map((at, i) => at - (tries[i] ?? 0)) }
})

describe("StartUp", () => {
  it.effect("says nothing when the database answers at once", () =>
    Effect.gen(function* () {
      const start = yield* starting(0)
      yield* Fiber.join(start.fiber)
      assert.deepStrictEqual(start.lines, [])
    }).pipe(Effect.provide(liveness))
  )

  it.effect("waits for a database that is away, with growing pauses of 6 s at the most, and stays alive", () =>
    Effect.gen(function* () {
      const alive = yield* Liveness.Liveness
      const start = yield* starting(100)
      yield* TestClock.adjust("10 minutes")
      yield* Fiber.join(start.fiber)
      const pauses = start.pauses()
      assert.isBelow(pauses[0] ?? Number.NaN, 700)
      assert.isAtMost(Math.max(...pauses), 6000)
      assert.isAtLeast(Math.min(...pauses), 400)
      assert.strictEqual(start.lines.filter((line) => line.level === "Warn").length, 100)
      assert.match(String(start.lines[0]?.annotations.reason), /08006/)
      assert.strictEqual(start.lines.at(-1)?.message, "the database answers")
      const { silentFor } = yield* alive.check
      assert.isBelow(Duration.toSeconds(silentFor), 600)
    }).pipe(Effect.provide(liveness))
  )

  it.effect("is alive in the whole time that it waits", () =>
    Effect.gen(function* () {
      const alive = yield* Liveness.Liveness
      yield* starting(Number.POSITIVE_INFINITY)
      for (let minute = 0; minute < 60; minute++) {
        yield* TestClock.adjust("1 minute")
        assert.isTrue((yield* alive.check).alive, `minute ${minute}`)
      }
    }).pipe(Effect.provide(liveness))
  )

  it.effect("fails at once with what waiting cannot mend", () =>
    Effect.gen(function* () {
      const refused = new StoreUnavailable({ operation: "ping", reason: "no such database", isRetryable: false })
      const start = yield* starting(1, refused)
      assert.strictEqual(yield* Effect.flip(Fiber.join(start.fiber)), refused)
      assert.strictEqual(start.tries.length, 1)
    }).pipe(Effect.provide(liveness))
  )
})
