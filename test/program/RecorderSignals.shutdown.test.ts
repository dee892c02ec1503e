import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { requests, startSignals } from "../support/StartedSignals.ts"

describe("RecorderSignals at shutdown", () => {
  it.effect("gives pending signals their chance at shutdown and ends as soon as they are through (L5)", () =>
    Effect.gen(function* () {
      const signals = yield* startSignals(() => Effect.as(Effect.sleep("500 millis"), "stopped"))
      yield* signals.offer(requests(10))
      const closing = yield* Effect.forkChild(signals.close, { startImmediately: true })
      yield* TestClock.adjust("1499 millis")
      assert.isUndefined(closing.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(closing)
      assert.strictEqual(yield* signals.count("stopped"), 10)
      assert.strictEqual(yield* signals.count("dropped"), 0)
      assert.deepStrictEqual(signals.warnings(), [])
    })
  )

  it.effect("stops at once when nothing is pending (L5)", () =>
    Effect.gen(function* () {
      const signals = yield* startSignals(() => Effect.succeed("stopped"))
      yield* signals.offer(requests(10))
      yield* signals.reached("stopped", 10)
      yield* signals.close
      assert.strictEqual(yield* signals.count("stopped"), 10)
    })
  )

  it.effect("drops what a silent recorder leaves after three seconds of shutdown, with one warning (L5)", () =>
    Effect.gen(function* () {
      let interrupted = 0
      const signals = yield* startSignals(() =>
        Effect.onInterrupt(Effect.never, () =>
          Effect.sync(() => {
            interrupted += 1
          })
        )
      )
      yield* signals.offer(requests(100))
      yield* signals.askedFor(4)
      const closing = yield* Effect.forkChild(signals.close, { startImmediately: true })
      yield* TestClock.adjust("2999 millis")
      assert.isUndefined(closing.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(closing)
      assert.strictEqual(interrupted, 4)
      assert.strictEqual(yield* signals.count("dropped"), 100)
      assert.strictEqual(yield* signals.count("failed"), 0)
      assert.deepStrictEqual(
        signals.warnings().map(({ message, annotations }) => [message, annotations.dropped]),
        [["recorder signals dropped: the process stops", 100]]
      )
    })
  )

  it.effect("drops what is offered after shutdown, without waiting (L5)", () =>
    Effect.gen(function* () {
      const signals = yield* startSignals(() => Effect.succeed("stopped"))
      yield* signals.close
      yield* signals.offer(requests(3))
      assert.strictEqual(yield* signals.count("dropped"), 3)
      assert.strictEqual(signals.warnings().length, 1)
      assert.deepStrictEqual(signals.asked, [])
    })
  )
})
