import { Context, type Effect, Schema } from "effect"
import type { StopRequest } from "../domain/StopRequest.ts"

/** The recorder did not take the stop signal; best effort, so this is counted and never reaches the cycle (R10). */
export class RecorderUnreachable extends Schema.TaggedError<RecorderUnreachable>()("RecorderUnreachable", {
  reason: Schema.String,
  /** False when the same request would be refused again. */
  isRetryable: Schema.Boolean
}) {
  override get message(): string {
    return this.reason
  }
}

/** `stopped`: taken, or nothing was left to stop. The other two: no signal left the process. */
export type StopResult = "stopped" | "not-configured" | "disabled"

/** The media stack's recorder. */
export class Recorder extends Context.Service<
  Recorder,
  {
    /** Asks once for one recording to be stopped, within a deadline of its own. Idempotent by recording id. */
    readonly requestStop: (request: StopRequest) => Effect.Effect<StopResult, RecorderUnreachable>
  }
>()("conference-room-reaper/Recorder") {}
