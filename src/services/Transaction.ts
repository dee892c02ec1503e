import { Context, type Effect } from "effect"
import type { RowRefused, StoreUnavailable } from "./StoreError.ts"

/** The unit of a batch (T1). A lost connection is a `StoreUnavailable` here, never a defect. */
export class Transaction extends Context.Service<
  Transaction,
  {
    /**
     * Runs `body` in one transaction: committed whole, or rolled back whole on failure, defect or interruption.
     * `onCommitted` runs once COMMIT was answered and never otherwise, also when the fiber was interrupted meanwhile; it
     * cannot be interrupted, so it must be short.
     */
    readonly run: <A, E, R, R2>(
      body: Effect.Effect<A, E, R>,
      onCommitted: (result: A) => Effect.Effect<void, never, R2>
    ) => Effect.Effect<A, E | StoreUnavailable, R | R2>
    /**
     * Runs `body` inside the open transaction; when it fails only its own writes are undone and the transaction goes on.
     * Checks deferred constraints too, so that one bad row shows here and not at COMMIT, where it would fail the batch.
     */
    readonly attempt: <A, E, R>(body: Effect.Effect<A, E, R>) => Effect.Effect<A, E | RowRefused | StoreUnavailable, R>
  }
>()("conference-room-reaper/Transaction") {}
