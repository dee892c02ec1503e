/**
 * Stages of work that a user ends with Ctrl-C. The first interruption ends the stage that it meets, and the next stage
 * begins; from then on `brokenOff` takes its part, and ends the whole. An interruption of the last stage ends the whole.
 */
import { Effect, Exit } from "effect"

interface Stages {
  readonly stage: <E, R>(work: Effect.Effect<void, E, R>) => Effect.Effect<void, E, R>
  readonly last: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export const inStages = <A, E, R>(
  brokenOff: Effect.Effect<void>,
  body: (stages: Stages) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      let interrupted = false
      // A fiber that was interrupted once is never interruptible again, but its children are.
      const last: Stages["last"] = (work) =>
        Effect.suspend(() =>
          interrupted ? Effect.raceFirst(work, Effect.andThen(brokenOff, Effect.interrupt)) : restore(work)
        )
      const stage: Stages["stage"] = (work) =>
        Effect.gen(function* () {
          const ended = yield* Effect.exit(last(work))
          if (Exit.isSuccess(ended)) return
          if (interrupted || !Exit.hasInterrupts(ended)) return yield* ended
          interrupted = true
        })
      return body({ stage, last })
    })
  )
