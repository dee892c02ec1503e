import { Context, type Effect, type Result, Schema } from "effect"
import { type ConferenceDetails, ConferenceId, type ConferenceSession } from "../domain/ConferenceSession.ts"
import type { DomainEvent } from "../domain/DomainEvent.ts"
import type { Instant } from "../domain/Instant.ts"
import type { Phase, Windows } from "../domain/Phase.ts"
import type { Refusal } from "../domain/Poison.ts"
import type { RowRefused, StoreUnavailable } from "./StoreError.ts"

/** A stored row that does not decode: poison (T4). `reason` names the column. */
export class MalformedRow extends Schema.TaggedError<MalformedRow>()("MalformedRow", {
  conferenceId: ConferenceId,
  reason: Schema.String
}) {
  override get message(): string {
    return this.reason
  }
}

/** What one phase looks for in one cycle: rows whose `phase.since` is at or before `cutoff`. */
export interface Scan {
  readonly phase: Phase
  readonly asOf: Instant
  /** AsOf minus the phase's window. */
  readonly cutoff: Instant
}

export interface ClaimedRow {
  readonly id: ConferenceId
  readonly session: Result.Result<ConferenceSession, MalformedRow>
  /** Refusals of this session in this phase before now; 0 when it has no poison record. */
  readonly poisonAttempts: number
}

export interface Backlog {
  /** Open sessions past their window, each once; those that wait for admission too. */
  readonly overdue: number
  /** Poison records of sessions that are still open. */
  readonly poison: number
}

/** The sessions, cross-tenant on purpose (R7). All but `backlog` and `details` run inside a transaction. */
export class ConferenceRepository extends Context.Service<
  ConferenceRepository,
  {
    /**
     * Locks at most `limit` due sessions, oldest first (R6), skipping rows that others have locked (T2) and those in
     * `tried`. Sessions with a poison record come after all others, and only when their next attempt is due or their row
     * has changed (T5). One undecodable row never fails the others.
     */
    readonly claim: (
      scan: Scan,
      limit: number,
      tried: ReadonlyArray<ConferenceId>
    ) => Effect.Effect<ReadonlyArray<ClaimedRow>, StoreUnavailable>
    /**
     * Due sessions that `claim` passed over because others had them locked. With a full batch only those older than or
     * level with the newest of `claimed`.
     */
    readonly countSkippedLocked: (
      scan: Scan,
      claimed: ReadonlyArray<ConferenceId>,
      batchIsFull: boolean
    ) => Effect.Effect<number, StoreUnavailable>
    /** Roster and recordings, one entry for each id; asked after the claim, so that they are read under the row lock. */
    readonly details: (
      ids: ReadonlyArray<ConferenceId>
    ) => Effect.Effect<ReadonlyMap<ConferenceId, Result.Result<ConferenceDetails, MalformedRow>>, StoreUnavailable>
    /**
     * Writes the transitions (R4), each only where the phase's whole predicate still holds. Returns the ids written; a
     * missing one is a lost race (R9). Their poison records go.
     */
    readonly apply: (
      scan: Scan,
      events: ReadonlyArray<DomainEvent>
    ) => Effect.Effect<ReadonlySet<ConferenceId>, RowRefused | StoreUnavailable>
    /**
     * Of sessions that `apply` was given and did not write, those of which the predicate still holds: no race was lost, the
     * database took the update without effect (a trigger or rule that suppresses it).
     */
    readonly suppressed: (
      scan: Scan,
      ids: ReadonlyArray<ConferenceId>
    ) => Effect.Effect<ReadonlyArray<ConferenceId>, StoreUnavailable>
    /** Writes or renews the poison records (T5). */
    readonly recordPoison: (scan: Scan, refusals: ReadonlyArray<Refusal>) => Effect.Effect<void, StoreUnavailable>
    /** The gauges, counted at `asOf`. */
    readonly backlog: (asOf: Instant, windows: Windows) => Effect.Effect<Backlog, StoreUnavailable>
  }
>()("conference-room-reaper/ConferenceRepository") {}
