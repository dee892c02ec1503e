/**
 * What a dispatcher needs of an outbox, whatever its rows are (X1, X2). Rows are chosen by their state, never by "id
 * greater than the last one seen": ids are handed out before commit, so a lower one may appear later.
 */
import type { Effect } from "effect"
import type { Instant } from "../domain/Instant.ts"
import type { StoreUnavailable } from "./StoreError.ts"

/** One refusal of one row's content. An outage of the receiver is none: it leaves no mark on the row. */
export interface DeliveryFailure {
  readonly id: bigint
  /** Refusals so far, this one included. */
  readonly attempts: number
  readonly error: string
  readonly nextAttemptAt: Instant
  /** Whether the row is parked: kept with its error until somebody acts. */
  readonly parked: boolean
}

export interface OutboxStatus {
  /** Rows that are neither delivered nor parked (nor expired). */
  readonly pending: number
  /** When the oldest pending row was written; null when none is pending. */
  readonly oldestPendingAt: Instant | null
  readonly parked: number
}

export interface Outbox<Row> {
  /**
   * At most `limit` pending rows in the order of their ids whose next attempt is due. A row waits while an earlier one of
   * its key waits, so that nothing of one key overtakes.
   */
  readonly claimPending: (asOf: Instant, limit: number) => Effect.Effect<ReadonlyArray<Row>, StoreUnavailable>
  readonly markDelivered: (ids: ReadonlyArray<bigint>, at: Instant) => Effect.Effect<void, StoreUnavailable>
  readonly recordFailures: (
    failures: ReadonlyArray<DeliveryFailure>,
    at: Instant
  ) => Effect.Effect<void, StoreUnavailable>
  /** Removes at most `limit` rows that were delivered (or expired) before the instant; parked ones stay. Returns how many. */
  readonly pruneDelivered: (before: Instant, limit: number) => Effect.Effect<number, StoreUnavailable>
  readonly status: Effect.Effect<OutboxStatus, StoreUnavailable>
}
