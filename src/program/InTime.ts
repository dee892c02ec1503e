/**
 * Bounds the wait for the database's answer. A connection that was cut off without a word must not stop a loop for ever;
 * nor keep the process from ending, where the statement comes right after a send and is not interrupted.
 */
import { Effect } from "effect"
import { StoreUnavailable } from "../services/StoreError.ts"

export const inTime = <A, E, R>(operation: string, statement: Effect.Effect<A, E, R>) =>
  Effect.timeoutOrElse(statement, {
    duration: "15 seconds",
    orElse: () => Effect.fail(new StoreUnavailable({ operation, reason: "no answer in time", isRetryable: true }))
  })
