import { expect, it } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as Liveness from "../../src/services/Liveness.ts"
import * as ReaperOptions from "../../src/services/ReaperOptions.ts"

// 2 * 10 s + 5 s: the loop may be silent for 25 s.
const layer = Liveness.layer.pipe(
  Layer.provide(
    Layer.succeed(ReaperOptions.ReaperOptions, {
      ...ReaperOptions.defaults,
      pollingInterval: Duration.seconds(10),
      maxRunDuration: Duration.seconds(5)
    })
  )
)

it.effect("is alive for two intervals and the longest cycle from the start on, and then no more", () =>
  Effect.gen(function* () {
    const liveness = yield* Liveness.Liveness
    yield* TestClock.adjust("25 seconds")
    expect(yield* liveness.check).toEqual({ alive: true, silentFor: Duration.seconds(25) })
    yield* TestClock.adjust("1 millis")
    expect(yield* liveness.check).toEqual({ alive: false, silentFor: Duration.millis(25_001) })
  }).pipe(Effect.provide(layer))
)

it.effect("is alive again after a beat, and counts from there", () =>
  Effect.gen(function* () {
    const liveness = yield* Liveness.Liveness
    yield* TestClock.adjust("1 minute")
    yield* liveness.beat
    expect(yield* liveness.check).toEqual({ alive: true, silentFor: Duration.zero })
    yield* TestClock.adjust("26 seconds")
    expect((yield* liveness.check).alive).toBe(false)
  }).pipe(Effect.provide(layer))
)
