/** What happened, in order: the record that the model judges. Moments are the virtual clock's, not the program's. */
import type { Closing } from "../../src/domain/Closing.ts"
import type { ConferenceId } from "../../src/domain/ConferenceSession.ts"
import type { Instant } from "../../src/domain/Instant.ts"
import type { Operation } from "../fakes/Faults.ts"
import type { SessionRow } from "../support/Sessions.ts"
import type { Plan } from "./Plan.ts"

export type Entry =
  /** The loop began a tick. */
  | { readonly _tag: "Tick"; readonly at: Instant }
  /** The database acts on an operation now. */
  | { readonly _tag: "Operation"; readonly operation: Operation; readonly phase: number; readonly at: Instant }
  /** The planned failure struck instead. */
  | { readonly _tag: "Injured"; readonly operation: Operation; readonly phase: number; readonly at: Instant }
  /** The operation takes its time from here on, until the database acts or the program gives up. */
  | { readonly _tag: "Delayed"; readonly operation: Operation; readonly phase: number; readonly at: Instant }
  /** The program gave up waiting for the operation. */
  | { readonly _tag: "CutOff"; readonly operation: Operation; readonly phase: number; readonly at: Instant }
  /** A batch is committed: the rows that it changed. */
  | {
      readonly _tag: "Fixed"
      readonly phase: number
      readonly at: Instant
      readonly changed: ReadonlyArray<SessionRow>
    }
  /** What `active_backlog` shows after the cycle. */
  | { readonly _tag: "Gauge"; readonly at: Instant; readonly shown: number }
  /** The messenger's transaction has the row lock. */
  | { readonly _tag: "Locked"; readonly room: ConferenceId; readonly at: Instant }
  /** It ended: what it had read, and what is there now when it was not refused. */
  | {
      readonly _tag: "Unlocked"
      readonly room: ConferenceId
      readonly at: Instant
      readonly before: SessionRow | undefined
      readonly after: SessionRow | undefined
    }

export interface Story {
  readonly plan: Plan
  readonly entries: ReadonlyArray<Entry>
  readonly endedAt: Instant
  readonly sessions: ReadonlyArray<SessionRow>
  readonly closings: ReadonlyArray<Closing>
  /** Conferences of the integration events, of the realtime rows and of the poison records. */
  readonly announced: ReadonlyArray<ConferenceId>
  readonly pushed: ReadonlyArray<ConferenceId>
  readonly refused: ReadonlyArray<ConferenceId>
}
