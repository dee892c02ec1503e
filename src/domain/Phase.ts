/**
 * The three phases as data, in the order in which every cycle runs them (R1 to R3). Predicate, guard and SQL are all
 * derived from this table, so that none of them can disagree with another.
 */
import type { Duration } from "effect"
import { Schema } from "effect"

export const PhaseName = Schema.Literals(["empty-room", "provision-timeout", "stale-live"])
export type PhaseName = typeof PhaseName.Type

export type Outcome = "empty_timeout" | "provision_failed" | "stale_timeout"

/** The options that open each phase's window. */
export interface Windows {
  readonly emptyRoomGrace: Duration.Duration
  readonly provisionTimeout: Duration.Duration
  readonly staleLiveTimeout: Duration.Duration
}

export interface Phase {
  readonly name: PhaseName
  readonly from: "Active" | "Provisioning"
  /** The column whose age is measured, also the order of the scan (R6). */
  readonly since: "lastActivityAt" | "createdAt"
  /** Whether only a room with ActiveParticipantCount = 0 qualifies. */
  readonly requiresEmpty: boolean
  readonly window: (windows: Windows) => Duration.Duration
  readonly to: "Ended" | "Failed"
  readonly endReason: "EmptyTimeout" | "Error" | "Timeout"
  readonly outcome: Outcome
}

export const emptyRoom: Phase = {
  name: "empty-room",
  from: "Active",
  since: "lastActivityAt",
  requiresEmpty: true,
  window: (windows) => windows.emptyRoomGrace,
  to: "Ended",
  endReason: "EmptyTimeout",
  outcome: "empty_timeout"
}

export const provisionTimeout: Phase = {
  name: "provision-timeout",
  from: "Provisioning",
  since: "createdAt",
  requiresEmpty: false,
  window: (windows) => windows.provisionTimeout,
  to: "Failed",
  endReason: "Error",
  outcome: "provision_failed"
}

export const staleLive: Phase = {
  name: "stale-live",
  from: "Active",
  since: "lastActivityAt",
  requiresEmpty: false,
  window: (windows) => windows.staleLiveTimeout,
  to: "Ended",
  endReason: "Timeout",
  outcome: "stale_timeout"
}

export const all: ReadonlyArray<Phase> = [emptyRoom, provisionTimeout, staleLive]
