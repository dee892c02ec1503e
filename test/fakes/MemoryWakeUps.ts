/** Wake-ups that come when the test says so; one that comes while nobody waits is remembered, several as one. */
import { Context, Effect, Layer, Queue } from "effect"
import { WakeUps } from "../../src/services/WakeUps.ts"

export class WakeUpsControl extends Context.Service<
  WakeUpsControl,
  {
    readonly signalEvents: Effect.Effect<void>
    readonly signalSignals: Effect.Effect<void>
  }
>()("test/WakeUpsControl") {}

export const layer = Layer.effectContext(
  Effect.gen(function* () {
    const events = yield* Queue.dropping<void>(1)
    const signals = yield* Queue.dropping<void>(1)
    return Context.make(
      WakeUps,
      WakeUps.of({ awaitEvents: Queue.take(events), awaitSignals: Queue.take(signals) })
    ).pipe(
      Context.add(
        WakeUpsControl,
        WakeUpsControl.of({
          signalEvents: Effect.asVoid(Queue.offer(events, undefined)),
          signalSignals: Effect.asVoid(Queue.offer(signals, undefined))
        })
      )
    )
  })
)
