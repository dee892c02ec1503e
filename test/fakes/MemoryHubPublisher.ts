/** A hub whose answers the test makes up. It remembers every push that reached it, and those it took. */
import { Context, Effect, Layer } from "effect"
import { HubPublisher, PushFailed } from "../../src/services/HubPublisher.ts"
import type { PendingSignal } from "../../src/services/RealtimeOutbox.ts"

/** `n` counts the pushes from 0. */
export type HubAnswer = (signal: PendingSignal, n: number) => Effect.Effect<void, PushFailed>

export const away = new PushFailed({ reason: "the request to the hub broke off (ECONNREFUSED)", kind: "unavailable" })
export const busy = new PushFailed({ reason: "the hub answered 500", kind: "deferred" })
export const refusal = new PushFailed({ reason: "the hub answered 422", kind: "rejected" })

export class HubPublisherControl extends Context.Service<
  HubPublisherControl,
  {
    readonly answerWith: (answer: HubAnswer) => Effect.Effect<void>
    /** Every push that was tried. */
    readonly tried: Effect.Effect<ReadonlyArray<PendingSignal>>
    /** The pushes that the hub took, in the order of its answers. */
    readonly taken: Effect.Effect<ReadonlyArray<PendingSignal>>
    /** The most pushes that ran at once. */
    readonly atOnce: Effect.Effect<number>
  }
>()("test/HubPublisherControl") {}

const make = Effect.sync(() => {
  let answer: HubAnswer = () => Effect.void
  let running = 0
  let atOnce = 0
  const tried: Array<PendingSignal> = []
  const taken: Array<PendingSignal> = []

  const push = (signal: PendingSignal) =>
    Effect.suspend(() => {
      running += 1
      atOnce = Math.max(atOnce, running)
      return answer(signal, tried.push(signal) - 1)
    }).pipe(
      Effect.tap(() => Effect.sync(() => taken.push(signal))),
      Effect.ensuring(
        Effect.sync(() => {
          running -= 1
        })
      )
    )

  return Context.make(HubPublisher, { push }).pipe(
    Context.add(HubPublisherControl, {
      answerWith: (next) =>
        Effect.sync(() => {
          answer = next
        }),
      tried: Effect.sync(() => [...tried]),
      taken: Effect.sync(() => [...taken]),
      atOnce: Effect.sync(() => atOnce)
    })
  )
})

export const layer = Layer.effectContext(make)
