import { Context, type Effect, Schema } from "effect"
import type { PendingEvent } from "./IntegrationOutbox.ts"

/**
 * What became of one row of a batch.
 * - `acked`: the broker has it on all in-sync replicas.
 * - `unavailable`: nothing is known to be wrong with the row; send it again later. No attempt is counted.
 * - `misconfigured`: rights or settings are wrong; as above, but waiting alone does not help.
 * - `rejected`: content. Of a batch of several the broker does not tell which row it was: all of them carry this, and the
 *   sender splits the batch.
 */
export interface PublishResult {
  readonly outcome: "acked" | "unavailable" | "misconfigured" | "rejected"
  /** Why it was not acked; empty when it was. No secrets. */
  readonly reason: string
}

export const acked: PublishResult = { outcome: "acked", reason: "" }

export type PublisherHealth = { readonly status: "up" } | { readonly status: "degraded"; readonly reason: string }

/** What is wrong with the topic, and whether `topic create` can mend it. */
export type TopicState =
  | { readonly state: "ready"; readonly partitions: number }
  | { readonly state: "missing" }
  | { readonly state: "unknown"; readonly reason: string }

/** `topic create` was refused; `reason` is for people. */
export class TopicNotCreated extends Schema.TaggedError<TopicNotCreated>()("TopicNotCreated", {
  reason: Schema.String
}) {
  override get message(): string {
    return this.reason
  }
}

/** The way to the broker (X1). One `publish` at a time: two at once may swap the order of one key. */
export class EventPublisher extends Context.Service<
  EventPublisher,
  {
    /**
     * Sends the rows in their order, at most 500 and 800 KB of them, and waits for the acks within a budget of its own. One
     * result for each row, in the same order; it never fails. It must not be interrupted while a send may still publish,
     * so it cannot be.
     */
    readonly publish: (batch: ReadonlyArray<PendingEvent>) => Effect.Effect<ReadonlyArray<PublishResult>>
    /** As the last send left it. */
    readonly health: Effect.Effect<PublisherHealth>
    readonly topic: Effect.Effect<TopicState>
    /** Creates the topic; an existing one is left as it is. Fails with a message for people. */
    readonly createTopic: (partitions: number, replication: number) => Effect.Effect<void, TopicNotCreated>
  }
>()("conference-room-reaper/EventPublisher") {}
