import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { inStages } from "../../src/simulator/Stages.ts"

/** Three stages, each held until it is let go; what has begun and ended is told in order. */
const threeStages = Effect.gen(function* () {
  const told: Array<string> = []
  const begun = yield* Effect.all({
    first: Deferred.make<void>(),
    second: Deferred.make<void>(),
    last: Deferred.make<void>()
  })
  const brokenOff = yield* Deferred.make<void>()
  const letGo = yield* Deferred.make<void>()
  const hold = (name: keyof typeof begun) =>
    Deferred.succeed(begun[name], undefined).pipe(
      Effect.andThen(Deferred.await(letGo)),
      Effect.onExit((exit) => Effect.sync(() => told.push(`${name} ${Exit.isSuccess(exit) ? "done" : "broken off"}`)))
    )
  const fiber = yield* inStages(Deferred.await(brokenOff), ({ stage, last }) =>
    stage(hold("first")).pipe(Effect.andThen(stage(hold("second"))), Effect.andThen(last(hold("last"))))
  ).pipe(Effect.forkChild)
  return {
    told,
    begun: (name: keyof typeof begun) => Deferred.await(begun[name]),
    interrupt: Effect.sync(() => fiber.interruptUnsafe()),
    breakOff: Deferred.succeed(brokenOff, undefined),
    letGo: Deferred.succeed(letGo, undefined),
    end: Fiber.await(fiber)
  }
})

describe("a run in stages", () => {
  it.effect("goes on with the next stage when a stage is interrupted, and comes to its end", () =>
    Effect.gen(function* () {
      const run = yield* threeStages
      yield* run.begun("first")
      yield* run.interrupt
      yield* run.begun("second")
      yield* run.letGo
      yield* run.end
      assert.deepStrictEqual(run.told, ["first broken off", "second done", "last done"])
    })
  )

  it.effect("is broken off in whatever stage it is once it was interrupted", () =>
    Effect.gen(function* () {
      const run = yield* threeStages
      yield* run.begun("first")
      yield* run.interrupt
      yield* run.begun("second")
      yield* run.breakOff
      assert.isTrue(Exit.hasInterrupts(yield* run.end))
      assert.deepStrictEqual(run.told, ["first broken off", "second broken off"])
    })
  )

  it.effect("does not hear of breaking off before it was interrupted", () =>
    Effect.gen(function* () {
      const run = yield* threeStages
      yield* run.breakOff
      yield* run.begun("first")
      yield* run.letGo
      assert.isTrue(Exit.isSuccess(yield* run.end))
      assert.deepStrictEqual(run.told, ["first done", "second done", "last done"])
    })
  )

  it.effect("ends without a result when its last stage is the first to be interrupted", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const begun = yield* Deferred.make<void>()
      const fiber = yield* inStages(Effect.never, ({ stage, last }) =>
        stage(Effect.sync(() => told.push("first"))).pipe(
          Effect.andThen(last(Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)))
        )
      ).pipe(Effect.forkChild)
      yield* Deferred.await(begun)
      assert.isTrue(Exit.hasInterrupts(yield* Effect.andThen(Fiber.interrupt(fiber), Fiber.await(fiber))))
      assert.deepStrictEqual(told, ["first"])
    })
  )

  it.effect("ends with the failure of a stage", () =>
    Effect.gen(function* () {
      const failed = yield* inStages(Effect.never, ({ stage, last }) =>
        Effect.andThen(stage(Effect.fail("away")), last(Effect.void))
      ).pipe(Effect.flip)
      assert.strictEqual(failed, "away")
    })
  )
})
