import { Context, type Effect, type Option, Schema, type Scope } from "effect"
import type { Instant } from "../domain/Instant.ts"
import type { StoreUnavailable } from "./StoreError.ts"

/** The run lock was taken from its holder: its time ran out or its connection is gone. */
export class LockLost extends Schema.TaggedError<LockLost>()("LockLost", { reason: Schema.String }) {
  override get message(): string {
    return `the run lock was lost: ${this.reason}`
  }
}

export interface HeldLock {
  /** The database's clock when the lock was granted (L7). */
  readonly databaseTime: Instant
  /** Fails when the lock is no longer ours; asked before each batch (L3). */
  readonly confirm: Effect.Effect<void, LockLost>
}

/** One cycle at a time, over all instances that share the database (L2, L3). */
export class RunLock extends Context.Service<
  RunLock,
  {
    /** Tries without waiting; none when another holds it. Held until the scope closes, at the longest for LockTtl. */
    readonly tryAcquire: Effect.Effect<Option.Option<HeldLock>, StoreUnavailable, Scope.Scope>
  }
>()("conference-room-reaper/RunLock") {}
