/** A broker whose answers the test makes up. It remembers each batch that was sent, and what it has in its log. */
import { Context, Effect, Layer } from "effect"
import { acked, EventPublisher, type PublishResult } from "../../src/services/EventPublisher.ts"
import type { PendingEvent } from "../../src/services/IntegrationOutbox.ts"

export type Batch = ReadonlyArray<PendingEvent>
/** `n` counts the sends from 0. */
export type Answer = (batch: Batch, n: number) => Effect.Effect<ReadonlyArray<PublishResult>>

const result = (outcome: PublishResult["outcome"], reason: string): PublishResult => ({ outcome, reason })
export const unavailable = result("unavailable", "connect ECONNREFUSED 127.0.0.1:9092")
export const misconfigured = result("misconfigured", "TOPIC_AUTHORIZATION_FAILED")
export const rejected = result("rejected", "MESSAGE_TOO_LARGE")

export const all =
  (answer: PublishResult): Answer =>
  (batch) =>
    Effect.succeed(batch.map(() => answer))

/** Refuses each batch that has such a row in it, whole and without a word about which row it was. */
export const refusing =
  (isPoison: (row: PendingEvent) => boolean): Answer =>
  (batch) =>
    Effect.succeed(batch.map(() => (batch.some(isPoison) ? rejected : acked)))

export class EventPublisherControl extends Context.Service<
  EventPublisherControl,
  {
    readonly answerWith: (answer: Answer) => Effect.Effect<void>
    /** Every batch that was sent, answered or not. */
    readonly sent: Effect.Effect<ReadonlyArray<Batch>>
    /** The rows that were acked, in the order of their acks. */
    readonly log: Effect.Effect<ReadonlyArray<PendingEvent>>
    /** The most sends that ran at once. */
    readonly atOnce: Effect.Effect<number>
  }
>()("test/EventPublisherControl") {}

const make = Effect.sync(() => {
  let answer: Answer = all(acked)
  let running = 0
  let atOnce = 0
  const sent: Array<Batch> = []
  const log: Array<PendingEvent> = []

  const publish = (batch: Batch) =>
    Effect.suspend(() => {
      running += 1
      atOnce = Math.max(atOnce, running)
      return answer(batch, sent.push(batch) - 1)
    }).pipe(
      Effect.tap((results) => Effect.sync(() => log.push(...batch.filter((_, i) => results[i]?.outcome === "acked")))),
      Effect.ensuring(
        Effect.sync(() => {
          running -= 1
        })
      ),
      Effect.uninterruptible
    )

  return Context.make(EventPublisher, {
    publish,
    health: Effect.succeed({ status: "up" } as const),
    topic: Effect.succeed({ state: "ready", partitions: 6 } as const),
    createTopic: () => Effect.void
  }).pipe(
    Context.add(EventPublisherControl, {
      answerWith: (next) =>
        Effect.sync(() => {
          answer = next
        }),
      sent: Effect.sync(() => [...sent]),
      log: Effect.sync(() => [...log]),
      atOnce: Effect.sync(() => atOnce)
    })
  )
})

export const layer = Layer.effectContext(make)
