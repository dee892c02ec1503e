/** What can be broken, by name: the statement of the SLO taken apart (see Model.ts). */
import { Schema } from "effect"

export const Clause = Schema.Literals([
  /** L1: a tick starts one interval after the one before, or at once when that one took longer; and none is missing. */
  "spacing",
  /** L1: no tick starts on top of a running one. */
  "one-at-a-time",
  /** L2: a tick on which the lock is busy does nothing. */
  "busy-is-idle",
  /** T6, L4: every phase has its turn, unless its own failure, a lost lock, a database that is away or the time took it. */
  "every-phase-has-its-turn",
  /** L4: nothing is written past MaxRunDuration. */
  "max-run",
  /** R1 to R3, R9: no room is closed that is not due by its own facts at AsOf. */
  "no-live-room",
  /** S1, S2, T2: a batch closes every due room that it has room for and nobody has locked. */
  "on-time",
  /** R6: at most BatchSize, the oldest first. */
  "oldest-first",
  /** R4: EndedAt and UpdatedAt are AsOf, the moment the lock was granted; nothing else changes. */
  "written-as-of",
  /** The bound in closed form (see Bound.ts). */
  "bound",
  /** S1, S2 by the rooms' own facts, for a calm plan. */
  "by-due-and-interval",
  /** S3: the gauge tells the rooms past their window, and none is left by a tick without trouble. */
  "backlog",
  /** W1, W7: one event, one push, one piece of evidence for each closed room and for no other. */
  "one-event",
  /** T4: a healthy room is never refused. */
  "nothing-refused",
  /** Only the messenger and the worker's batches change rooms. */
  "untouched"
])
export type Clause = typeof Clause.Type

export class Violated extends Schema.TaggedError<Violated>()("Violated", { clause: Clause, detail: Schema.String }) {
  override get message(): string {
    return `${this.clause}: ${this.detail}`
  }
}
