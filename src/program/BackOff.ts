/** The pause after failed attempts: doubling, jittered and bounded, so that no outage is a hot loop. */
import { Duration, Effect, Random } from "effect"
import type { Trouble } from "./Outage.ts"

const first = Duration.millis(500)

/** A receiver that is away comes back by itself; rights and settings do not mend themselves. */
const longest: Readonly<Record<Trouble["kind"], Duration.Duration>> = {
  unavailable: Duration.seconds(30),
  database: Duration.seconds(30),
  misconfigured: Duration.minutes(1)
}

export interface BackOff {
  /** The pause after one more failure of the kind. */
  readonly next: (kind: Trouble["kind"]) => Effect.Effect<Duration.Duration>
  /** Something succeeded: the next pause is the first one again. */
  readonly reset: Effect.Effect<void>
}

export const make = (): BackOff => {
  let pause = first
  return {
    next: (kind) =>
      Effect.map(Random.nextBetween(0.8, 1.2), (jitter) => {
        const now = Duration.min(pause, longest[kind])
        pause = Duration.times(now, 2)
        return Duration.times(now, jitter)
      }),
    reset: Effect.sync(() => {
      pause = first
    })
  }
}
