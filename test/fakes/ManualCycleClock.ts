/** AsOf as the test says, so that the same case runs to the microsecond on the fakes and on PostgreSQL. */
import { Context, Duration, Effect, Layer } from "effect"
import * as Instant from "../../src/domain/Instant.ts"
import { CycleClock } from "../../src/services/CycleClock.ts"
import { at } from "../support/Sessions.ts"

export const start = at("2026-03-01T12:00:00.123Z")

export class Timeline extends Context.Service<
  Timeline,
  { readonly reset: Effect.Effect<void>; readonly advance: (duration: Duration.Input) => Effect.Effect<void> }
>()("test/Timeline") {}

export const layer = Layer.effectContext(
  Effect.sync(() => {
    let now = start
    const asOf = Effect.sync(() => now)
    return Context.make(CycleClock, { asOf }).pipe(
      Context.add(Timeline, {
        reset: Effect.sync(() => {
          now = start
        }),
        advance: (duration) =>
          Effect.sync(() => {
            now = Instant.plus(now, Duration.fromInputUnsafe(duration))
          })
      })
    )
  })
)
