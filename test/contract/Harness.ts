/**
 * What a contract suite needs beside the ports: rows to begin with, what others see afterwards, a second transaction to
 * race against, and a database that refuses rows. One implementation in memory, one on PostgreSQL.
 */
import { Context, type Effect, type Scope } from "effect"
import type { Closing } from "../../src/domain/Closing.ts"
import type { ConferenceId } from "../../src/domain/ConferenceSession.ts"
import type { Instant } from "../../src/domain/Instant.ts"
import type { RefusalPoint } from "../fakes/Faults.ts"
import type { Delivery, PoisonRow, RunRow } from "../fakes/Tables.ts"
import type { ParticipantRow, RecordingRow, SessionRow } from "../support/Sessions.ts"

/** The messenger's side: join, leave, end-conference. Rolled back with its scope unless committed. */
export interface OtherSide {
  /** `select … for update`. */
  readonly lockRow: (id: ConferenceId) => Effect.Effect<void>
  readonly update: (id: ConferenceId, changes: Partial<SessionRow>) => Effect.Effect<void>
  readonly commit: Effect.Effect<void>
  readonly rollback: Effect.Effect<void>
}

export interface HeldCommit {
  /** Waits until a commit is held. */
  readonly reached: Effect.Effect<void>
  readonly release: Effect.Effect<void>
}

export interface StoredMessage {
  readonly messageId: string
  readonly topic: string
  readonly messageKey: string
  readonly eventType: string
  readonly payload: unknown
  readonly headers: unknown
  readonly createdAt: Instant
}

export interface StoredSignal {
  readonly kind: string
  readonly targetKind: string
  readonly chatId: string
  readonly sessionKind: string
  readonly sessionId: string
  readonly signal: string
  readonly headers: unknown
  readonly createdAt: Instant
}

export class Harness extends Context.Service<
  Harness,
  {
    /** Empties all tables and forgets all refusals. */
    readonly reset: Effect.Effect<void>
    readonly insertSessions: (rows: ReadonlyArray<SessionRow>) => Effect.Effect<void>
    readonly insertParticipants: (rows: ReadonlyArray<ParticipantRow>) => Effect.Effect<void>
    readonly insertRecordings: (rows: ReadonlyArray<RecordingRow>) => Effect.Effect<void>
    /** Runs of the past, one a second, the first with `jobRunId(1)` and the oldest. */
    readonly insertRuns: (count: number) => Effect.Effect<void>
    /** A committed change of one session by somebody else. */
    readonly updateSession: (id: ConferenceId, changes: Partial<SessionRow>) => Effect.Effect<void>
    /** A second connection's transaction. */
    readonly otherSide: Effect.Effect<OtherSide, never, Scope.Scope>
    /** Holds the next commit that writes to the outbox between its start and its taking effect. */
    readonly holdCommit: Effect.Effect<HeldCommit, never, Scope.Scope>
    /** Waits until some transaction waits for a row lock. */
    readonly lockWaitSeen: Effect.Effect<void>
    /** Lets LockTtl go by, until the database has let go of an idle holder. */
    readonly passLockTtl: Effect.Effect<void>
    /** Refuses rows of these conferences at one point with SQLSTATE 23514, until `reset`. */
    readonly refuse: (point: RefusalPoint, ids: ReadonlyArray<ConferenceId>) => Effect.Effect<void>
    /** What a reader on another connection sees; by id, or in order of insertion. */
    readonly sessions: Effect.Effect<ReadonlyArray<SessionRow>>
    readonly participants: Effect.Effect<ReadonlyArray<ParticipantRow>>
    readonly recordings: Effect.Effect<ReadonlyArray<RecordingRow>>
    readonly outbox: Effect.Effect<ReadonlyArray<StoredMessage>>
    readonly realtime: Effect.Effect<ReadonlyArray<StoredSignal>>
    /** How far each row of the outboxes has come, in the order of the ids. */
    readonly eventDelivery: Effect.Effect<ReadonlyArray<Delivery>>
    readonly signalDelivery: Effect.Effect<ReadonlyArray<Delivery>>
    readonly closings: Effect.Effect<ReadonlyArray<Closing>>
    readonly poison: Effect.Effect<ReadonlyArray<PoisonRow>>
    /** Newest first. */
    readonly runs: Effect.Effect<ReadonlyArray<RunRow>>
    /** The database's own clock. */
    readonly databaseTime: Effect.Effect<Instant>
    /** Every connection of the layers under test is cut by the server. */
    readonly killConnections: Effect.Effect<void>
  }
>()("test/Harness") {}
