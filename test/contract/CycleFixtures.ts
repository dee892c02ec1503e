/** What whole-cycle suites share: the program on top of the ports under test, and ways to stop it in mid-batch. */
import { Deferred, Duration, Effect, Layer } from "effect"
import * as Metrics from "../../src/program/Metrics.ts"
import * as RecorderSignals from "../../src/program/RecorderSignals.ts"
import type { CycleClock } from "../../src/services/CycleClock.ts"
import { IntegrationOutbox } from "../../src/services/IntegrationOutbox.ts"
import * as Liveness from "../../src/services/Liveness.ts"
import { defaults, type Options, ReaperOptions } from "../../src/services/ReaperOptions.ts"
import { RunLock } from "../../src/services/RunLock.ts"
import type { Store } from "../../src/services/Store.ts"
import * as ManualCycleClock from "../fakes/ManualCycleClock.ts"
import { start, Timeline } from "../fakes/ManualCycleClock.ts"
import type { RecorderControl } from "../fakes/MemoryRecorder.ts"
import * as MemoryRecorder from "../fakes/MemoryRecorder.ts"
import { onEmptyTables, type Ports } from "./Fixtures.ts"

/** What a whole-cycle suite runs on. */
export type Program =
  | Ports
  | Store
  | CycleClock
  | Timeline
  | ReaperOptions
  | RecorderControl
  | RecorderSignals.RecorderSignals
  | Metrics.ClosingMetrics
  | Liveness.Liveness

/** AsOf is set by hand, far from the database's own clock, so the clock check is off. */
export const options: Options = { ...defaults, maxClockSkew: Duration.zero, instance: "test" }

const around = Layer.mergeAll(
  Metrics.layer,
  Liveness.layer,
  Layer.provideMerge(RecorderSignals.layer, MemoryRecorder.layer),
  ManualCycleClock.layer
)

/** Puts the program's own services beside ports that need only the options. */
export const program = <A, E>(ports: Layer.Layer<A, E, ReaperOptions>) =>
  Layer.merge(ports, around).pipe(Layer.provideMerge(Layer.succeed(ReaperOptions, options)))

/** A place in the batch at which it waits: after the transitions were written, before the outbox rows are. */
export const pausedBatch = Effect.gen(function* () {
  const outbox = yield* IntegrationOutbox
  const reached = yield* Deferred.make<void>()
  const released = yield* Deferred.make<void>()
  return {
    reached: Deferred.await(reached),
    release: Deferred.succeed(released, undefined),
    layer: Layer.succeed(IntegrationOutbox, {
      ...outbox,
      append: (messages) =>
        Deferred.succeed(reached, undefined).pipe(
          Effect.andThen(Deferred.await(released)),
          Effect.andThen(outbox.append(messages))
        )
    })
  }
})

/** A run lock that everybody gets: what is left then is skip-locked and the guard. */
export const bypassedRunLock = Layer.succeed(RunLock, {
  tryAcquire: Effect.succeedSome({ databaseTime: start, confirm: Effect.void })
})

/** A test on empty tables, at `start`. */
export const fromTheStart = <A, E, R>(body: Effect.Effect<A, E, R>) =>
  Effect.andThen(
    Effect.flatMap(Timeline, (timeline) => timeline.reset),
    onEmptyTables(body)
  )
