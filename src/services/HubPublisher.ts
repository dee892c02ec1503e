import { Context, type Effect, Schema } from "effect"
import type { PendingSignal } from "./RealtimeOutbox.ts"

/** The hub did not take a push. */
export class PushFailed extends Schema.TaggedError<PushFailed>()("PushFailed", {
  reason: Schema.String,
  /**
   * - `unavailable`: no answer: the hub is away; the same push may be taken later, no attempt is counted.
   * - `deferred`: the hub answered that it cannot take this push now; others may be taken, no attempt is counted.
   * - `misconfigured`: the hub lets none of our pushes in; as above, but waiting alone does not help.
   * - `rejected`: this push for what it is; an attempt is counted.
   */
  kind: Schema.Literals(["unavailable", "deferred", "misconfigured", "rejected"])
}) {
  override get message(): string {
    return this.reason
  }
}

/** The way to the realtime hub (X2). */
export class HubPublisher extends Context.Service<
  HubPublisher,
  {
    /** Posts one push, signed, within a deadline of its own. */
    readonly push: (signal: PendingSignal) => Effect.Effect<void, PushFailed>
  }
>()("conference-room-reaper/HubPublisher") {}
