/**
 * The loop (L1): a tick every PollingInterval, never two at once, and none made up after an overrun. It cannot die: what
 * a tick throws is logged with its cause and counted, and the next tick is on time. Interruption ends it (L5).
 */
import { Clock, Duration, Effect, Metric, Ref, Schedule } from "effect"
import { Liveness } from "../services/Liveness.ts"
import { ReaperOptions } from "../services/ReaperOptions.ts"
import * as Cycle from "./Cycle.ts"
import * as Metrics from "./Metrics.ts"

// Nothing may get out of here, also when the logger is what is broken.
const tick = Effect.gen(function* () {
  const liveness = yield* Liveness
  yield* liveness.beat
  yield* Cycle.run
}).pipe(
  Effect.catchCause((cause) =>
    Metric.update(Metrics.errors, 1).pipe(Effect.andThen(Effect.logError("tick failed", cause)), Effect.ignoreCause)
  )
)

/**
 * `Schedule.spaced` with the time of the tick taken off the pause, so that ticks start one interval apart and a room is
 * closed by its due moment plus one interval (S1). On the monotonic clock: a wall clock that is set back must not stop
 * the worker. After an overrun the next tick follows at once and the spacing starts anew from it.
 */
export const everyInterval = Effect.fnUntraced(function* (interval: Duration.Duration) {
  const step = BigInt(Math.round(Duration.toMillis(interval))) * 1_000_000n
  const lastStart = yield* Ref.make(yield* Clock.monotonicTimeNanos)
  return Schedule.spaced(interval).pipe(
    Schedule.modifyDelay(() =>
      Effect.gen(function* () {
        const now = yield* Clock.monotonicTimeNanos
        const planned = (yield* Ref.get(lastStart)) + step
        yield* Ref.set(lastStart, planned > now ? planned : now)
        return Duration.nanos(planned > now ? planned - now : 0n)
      })
    )
  )
})

/** Ticks until it is interrupted; the first one at once. */
export const run = Effect.gen(function* () {
  const options = yield* ReaperOptions
  const schedule = yield* everyInterval(options.pollingInterval)
  return yield* Effect.repeat(tick, schedule)
})
