/**
 * One row of `messenger.conference_sessions` as the worker reads it, with what its event needs of the roster and the
 * recordings. Only life-cycle facts: no media, no tokens, no names of people (INV-CONF-7).
 */
import { Schema } from "effect"
import { InstantFromIso } from "./Instant.ts"

// PostgreSQL accepts any 128 bits as a uuid; the RFC's version and variant bits are none of our business.
// The u flag: only such a pattern is carried into a generated JSON Schema.
const uuid = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/u, { expected: "a lower-case UUID" })
)

export const ConferenceId = uuid.pipe(Schema.brand("ConferenceId"))
export type ConferenceId = typeof ConferenceId.Type
export const ChatId = uuid.pipe(Schema.brand("ChatId"))
export type ChatId = typeof ChatId.Type
export const DealId = uuid.pipe(Schema.brand("DealId"))
export type DealId = typeof DealId.Type
export const TenantId = uuid.pipe(Schema.brand("TenantId"))
export type TenantId = typeof TenantId.Type
export const UserId = uuid.pipe(Schema.brand("UserId"))
export type UserId = typeof UserId.Type
export const RecordingId = uuid.pipe(Schema.brand("RecordingId"))
export type RecordingId = typeof RecordingId.Type
/** Names one cycle; the correlation id of all that the cycle does. */
export const JobRunId = uuid.pipe(Schema.brand("JobRunId"))
export type JobRunId = typeof JobRunId.Type

export const MediaType = Schema.Literals(["Audio", "Video"])
export type MediaType = typeof MediaType.Type

/** The end reasons that this worker writes; others are written by others. */
export const EndReason = Schema.Literals(["EmptyTimeout", "Timeout", "Error"])
export type EndReason = typeof EndReason.Type

const SessionStatus = Schema.Literals(["Provisioning", "Active", "Ended", "Failed"])

/** `dealId` and `startedAt` may be missing in a row; the guard of the transition refuses such a room, not the decoder. */
export const ConferenceSession = Schema.Struct({
  id: ConferenceId,
  chatId: ChatId,
  dealId: Schema.NullOr(DealId),
  tenantId: TenantId,
  startedByUserId: UserId,
  mediaType: MediaType,
  status: SessionStatus,
  createdAt: InstantFromIso,
  lastActivityAt: InstantFromIso,
  startedAt: Schema.NullOr(InstantFromIso),
  activeParticipantCount: Schema.Int,
  peakParticipantCount: Schema.Int
})
export interface ConferenceSession extends Schema.Schema.Type<typeof ConferenceSession> {}

export const Participant = Schema.Struct({
  userId: UserId,
  joinedAt: InstantFromIso,
  leftAt: Schema.NullOr(InstantFromIso)
})
export interface Participant extends Schema.Schema.Type<typeof Participant> {}

export const RecordingStatus = Schema.Literals(["Pending", "Recording", "Uploading", "Available", "Failed"])
export type RecordingStatus = typeof RecordingStatus.Type

export const Recording = Schema.Struct({
  id: RecordingId,
  status: RecordingStatus,
  externalRef: Schema.NullOr(Schema.String),
  createdAt: InstantFromIso
})
export interface Recording extends Schema.Schema.Type<typeof Recording> {}

/** Roster in order of joining, recordings oldest first. */
export const ConferenceDetails = Schema.Struct({
  participants: Schema.Array(Participant),
  recordings: Schema.Array(Recording)
})
export interface ConferenceDetails extends Schema.Schema.Type<typeof ConferenceDetails> {}

/** A recording that the recorder may still be working on (R10). */
export const isActiveRecording = (recording: Recording): boolean =>
  recording.status === "Pending" || recording.status === "Recording" || recording.status === "Uploading"
