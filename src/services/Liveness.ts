/**
 * Whether the loop still turns: `GET /health/live` fails once no cycle was tried for over two intervals and the longest
 * cycle. Measured on the monotonic clock, so that a step of the system's time neither hides nor feigns a stuck loop.
 */
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { ReaperOptions } from "./ReaperOptions.ts"

export class Liveness extends Context.Service<
  Liveness,
  {
    /** A tick is being tried. */
    readonly beat: Effect.Effect<void>
    /** Silence counts from the last beat, before the first one from the start. */
    readonly check: Effect.Effect<{ readonly alive: boolean; readonly silentFor: Duration.Duration }>
  }
>()("conference-room-reaper/Liveness") {}

export const layer: Layer.Layer<Liveness, never, ReaperOptions> = Layer.effect(
  Liveness,
  Effect.gen(function* () {
    const { maxRunDuration, pollingInterval } = yield* ReaperOptions
    const limit = Duration.sum(Duration.times(pollingInterval, 2), maxRunDuration)
    let lastBeat = yield* Clock.monotonicTimeNanos
    return {
      beat: Effect.map(Clock.monotonicTimeNanos, (now) => {
        lastBeat = now
      }),
      check: Effect.map(Clock.monotonicTimeNanos, (now) => {
        const silentFor = Duration.millis(Number((now - lastBeat) / 1_000_000n))
        return { alive: Duration.isLessThanOrEqualTo(silentFor, limit), silentFor }
      })
    }
  })
)
