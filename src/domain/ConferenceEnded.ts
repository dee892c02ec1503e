/**
 * The integration event `pin.messenger.conference-ended.v1`: topic, key, message id, headers and payload (W1, W3, W6).
 * Names and formats are a wire contract: consumers depend on them.
 */
import { Schema } from "effect"
import { v5 as uuidv5 } from "uuid"
import {
  ChatId,
  ConferenceId,
  DealId,
  EndReason,
  type JobRunId,
  MediaType,
  RecordingId,
  TenantId,
  UserId
} from "./ConferenceSession.ts"
import type { ConferenceEnded } from "./DomainEvent.ts"
import { type Instant, InstantFromIso } from "./Instant.ts"

export const topic = "pin.messenger.conference-ended.v1"
const eventType = topic

// Namespace of our message ids: fixed for ever, since the id of a conference's event must come out the same after any
// restart, on any instance (W6).
const messageIdNamespace = "5f0c3a52-9d0e-5c57-8b9e-3f6c6a1d7c41"

/** UUIDv5 of the conference and the event type: the unique column refuses a second event for one conference (W6). */
export const messageId = (conferenceId: ConferenceId): string =>
  uuidv5(`${eventType}:${conferenceId}`, messageIdNamespace)

// All that Instant.format can write, far years included, so that this check refuses no room.
const InstantOnWire = Schema.String.annotate({ format: "date-time" })
  .check(Schema.isPattern(/^(\d{4}|[+-]\d{6})-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(\d{3})?Z$/u))
  .pipe(Schema.decodeTo(InstantFromIso))

const Participant = Schema.Struct({
  UserId,
  JoinedAt: InstantOnWire,
  LeftAt: Schema.optionalKey(InstantOnWire)
})

/** The payload (W3). `RecordingId` and `LeftAt` are absent when there is none. */
export const Payload = Schema.Struct({
  ConferenceId,
  ChatId,
  DealId,
  TenantId,
  MediaType,
  Status: Schema.Literal("Ended"),
  EndReason,
  StartedByUserId: UserId,
  StartedAt: InstantOnWire,
  EndedAt: InstantOnWire,
  DurationSeconds: Schema.Int.annotate({ description: "Whole seconds from StartedAt to EndedAt." }),
  PeakParticipantCount: Schema.Int,
  Participants: Schema.Array(Participant),
  WasRecorded: Schema.Boolean.annotate({ description: "Whether there is a recording that has not failed." }),
  RecordingId: Schema.optionalKey(
    RecordingId.annotate({
      description: "The newest of those recordings; absent when there is none. It may still be in the making."
    })
  )
}).annotate({
  title: "conference-ended",
  description: "A conference has ended. Ids, enums and life-cycle facts only."
})

export interface OutboxMessage {
  readonly messageId: string
  readonly conferenceId: ConferenceId
  readonly topic: string
  /** DealId in lower-case text form: the Kafka key, so that one deal's events keep their order. */
  readonly messageKey: string
  readonly eventType: string
  readonly payload: unknown
  readonly headers: Readonly<Record<string, string>>
  /** AsOf of the cycle that wrote it. */
  readonly createdAt: Instant
}

const encodePayload = Schema.encodeSync(Payload)

/** The outbox row of one ended conference. `traceparent` is the W3C context of the item's span. */
export const fromEvent = (event: ConferenceEnded, jobRunId: JobRunId, traceparent: string): OutboxMessage => {
  const kept = event.recordings.filter((recording) => recording.status !== "Failed")
  const newest = kept.reduce<(typeof kept)[number] | undefined>(
    (latest, recording) => (latest === undefined || recording.createdAt >= latest.createdAt ? recording : latest),
    undefined
  )
  const id = messageId(event.conferenceId)
  return {
    messageId: id,
    conferenceId: event.conferenceId,
    topic,
    messageKey: event.dealId,
    eventType,
    payload: encodePayload({
      ConferenceId: event.conferenceId,
      ChatId: event.chatId,
      DealId: event.dealId,
      TenantId: event.tenantId,
      MediaType: event.mediaType,
      Status: event.status,
      EndReason: event.endReason,
      StartedByUserId: event.startedByUserId,
      StartedAt: event.startedAt,
      EndedAt: event.facts.asOf,
      DurationSeconds: event.durationSeconds,
      PeakParticipantCount: event.peakParticipantCount,
      Participants: event.participants.map((participant) => ({
        UserId: participant.userId,
        JoinedAt: participant.joinedAt,
        ...(participant.leftAt === null ? {} : { LeftAt: participant.leftAt })
      })),
      WasRecorded: newest !== undefined,
      ...(newest === undefined ? {} : { RecordingId: newest.id })
    }),
    headers: {
      "message-id": id,
      "event-type": eventType,
      "correlation-id": jobRunId,
      traceparent,
      "content-type": "application/json"
    },
    createdAt: event.facts.asOf
  }
}
