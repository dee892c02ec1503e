/**
 * Rows as they stand in the tables, and builders for them. Text columns are plain strings and instants may be infinite,
 * because a stored row can be worse than the domain allows: that is what poison is made of (T4).
 */
import { Duration } from "effect"
import { ConferenceId, JobRunId } from "../../src/domain/ConferenceSession.ts"
import * as Instant from "../../src/domain/Instant.ts"

export type Moment = Instant.Instant | "infinity" | "-infinity"

export interface SessionRow {
  readonly id: ConferenceId
  readonly chatId: string
  readonly dealId: string | null
  readonly tenantId: string
  readonly startedByUserId: string
  readonly mediaType: string
  readonly status: string
  readonly endReason: string | null
  readonly createdAt: Moment
  readonly lastActivityAt: Moment
  readonly updatedAt: Moment
  readonly startedAt: Moment | null
  readonly endedAt: Moment | null
  readonly durationSeconds: number | null
  readonly activeParticipantCount: number
  readonly peakParticipantCount: number
}

export interface ParticipantRow {
  readonly conferenceId: ConferenceId
  readonly userId: string
  readonly joinedAt: Moment
  readonly leftAt: Moment | null
}

export interface RecordingRow {
  readonly id: string
  readonly conferenceId: ConferenceId
  readonly status: string
  readonly externalRef: string | null
  readonly createdAt: Moment
}

/** A readable UUID: one letter group for the kind, the number at the end. */
const uuid = (kind: string, n: number): string => `${kind}-0000-4000-8000-${n.toString(16).padStart(12, "0")}`

/** Ascending with `n`, so that ties by id have a known order. */
export const conferenceId = (n: number): ConferenceId => ConferenceId.make(uuid("c0000000", n))
export const jobRunId = (n: number): JobRunId => JobRunId.make(uuid("b0000000", n))
export const recordingId = (n: number): string => uuid("e0000000", n)
export const userId = (n: number): string => uuid("a0000000", n)

export const at = (iso: string): Instant.Instant => {
  const instant = Instant.parse(iso)
  if (instant._tag === "None") throw new Error(`not an instant: ${iso}`)
  return instant.value
}

export const microsecondsAfter = (instant: Instant.Instant, micros: bigint): Instant.Instant =>
  Instant.Instant.make(instant + micros)

export const before = (instant: Instant.Instant, duration: Duration.Input): Instant.Instant =>
  Instant.minus(instant, Duration.fromInputUnsafe(duration))

/** A room in which somebody sits: `Active`, one participant, started and last heard of at `since`. */
export const activeSession = (n: number, since: Instant.Instant, changes: Partial<SessionRow> = {}): SessionRow => ({
  id: conferenceId(n),
  chatId: uuid("c4a70000", n),
  dealId: uuid("dea10000", n),
  tenantId: uuid("7e000000", n),
  startedByUserId: userId(1),
  mediaType: "Video",
  status: "Active",
  endReason: null,
  createdAt: since,
  lastActivityAt: since,
  updatedAt: since,
  startedAt: since,
  endedAt: null,
  durationSeconds: null,
  activeParticipantCount: 1,
  peakParticipantCount: 3,
  ...changes
})

/** A room that everybody has left at `since` (R1). */
export const emptySession = (n: number, since: Instant.Instant, changes: Partial<SessionRow> = {}): SessionRow =>
  activeSession(n, since, { activeParticipantCount: 0, ...changes })

/** A room that waits for the media stack since `since` (R2). */
export const provisioningSession = (n: number, since: Instant.Instant, changes: Partial<SessionRow> = {}): SessionRow =>
  activeSession(n, since, {
    status: "Provisioning",
    startedAt: null,
    activeParticipantCount: 0,
    peakParticipantCount: 0,
    ...changes
  })

export const participant = (
  conference: ConferenceId,
  n: number,
  joinedAt: Moment,
  leftAt: Moment | null = null
): ParticipantRow => ({ conferenceId: conference, userId: userId(n), joinedAt, leftAt })

export const recording = (
  conference: ConferenceId,
  n: number,
  createdAt: Moment,
  changes: Partial<RecordingRow> = {}
): RecordingRow => ({
  id: recordingId(n),
  conferenceId: conference,
  status: "Recording",
  externalRef: `job-${n}`,
  createdAt,
  ...changes
})
