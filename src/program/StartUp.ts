/** The way from "process started" to "first tick": wait for the database, then migrate. */
import { Duration, Effect, Schedule } from "effect"
import { Liveness } from "../services/Liveness.ts"
import { Store } from "../services/Store.ts"
import type { StoreUnavailable } from "../services/StoreError.ts"

const backOff = Schedule.min([Schedule.exponential("500 millis"), Schedule.spaced("5 seconds")]).pipe(Schedule.jittered)

/** Repeats what fails because the database is away, with back-off, alive but not ready; other failures are final. */
export const whenDatabaseAnswers = <A, R>(effect: Effect.Effect<A, StoreUnavailable, R>) =>
  Effect.gen(function* () {
    const liveness = yield* Liveness
    return yield* effect.pipe(
      Effect.tapError((error) =>
        error.isRetryable
          ? liveness.beat.pipe(
              Effect.andThen(Effect.logWarning("the database is away, waiting for it")),
              Effect.annotateLogs({ reason: error.message })
            )
          : Effect.void
      ),
      Effect.retry({ schedule: backOff, while: (error) => error.isRetryable })
    )
  })

/** Succeeds once the database answers. */
export const databaseAnswers = Effect.gen(function* () {
  const store = yield* Store
  const [waited] = yield* Effect.timed(whenDatabaseAnswers(store.ping))
  if (Duration.toSeconds(waited) > 1) yield* Effect.logInfo("the database answers")
})
