import { assert, describe, it } from "@effect/vitest"
import * as Message from "../../src/domain/ConferenceEnded.ts"
import { type Recording, RecordingId, type RecordingStatus, UserId } from "../../src/domain/ConferenceSession.ts"
import type { ConferenceEnded } from "../../src/domain/DomainEvent.ts"
import { endedEvent, traceparent } from "../contract/Fixtures.ts"
import { at, conferenceId, jobRunId, recordingId, userId } from "../support/Sessions.ts"

const recording = (n: number, status: RecordingStatus, createdAt = "2026-03-01T11:00:00Z"): Recording => ({
  id: RecordingId.make(recordingId(n)),
  status,
  externalRef: null,
  createdAt: at(createdAt)
})

const messageOf = (changes: Partial<ConferenceEnded> = {}) =>
  Message.fromEvent({ ...endedEvent(1), ...changes }, jobRunId(7), traceparent)

const payloadOf = (recordings: ReadonlyArray<Recording>) => {
  const { payload } = messageOf({ recordings })
  assert.isTrue(typeof payload === "object" && payload !== null)
  return payload as Record<string, unknown>
}

describe("ConferenceEnded message", () => {
  it("has exactly the names and formats of the wire contract (W1, W3, X1)", () => {
    const message = messageOf({
      participants: [
        { userId: UserId.make(userId(1)), joinedAt: at("2026-03-01T11:00:00Z"), leftAt: null },
        {
          userId: UserId.make(userId(2)),
          joinedAt: at("2026-03-01T11:00:00.000001Z"),
          leftAt: at("2026-03-01T11:30:00Z")
        }
      ],
      recordings: [recording(1, "Recording")]
    })
    assert.strictEqual(
      JSON.stringify(message.payload, null, 1),
      JSON.stringify(
        {
          ConferenceId: "c0000000-0000-4000-8000-000000000001",
          ChatId: "c4a70000-0000-4000-8000-000000000001",
          DealId: "dea10000-0000-4000-8000-000000000001",
          TenantId: "7e000000-0000-4000-8000-000000000001",
          MediaType: "Video",
          Status: "Ended",
          EndReason: "EmptyTimeout",
          StartedByUserId: "a0000000-0000-4000-8000-000000000001",
          StartedAt: "2026-03-01T11:58:30.123456Z",
          EndedAt: "2026-03-01T12:00:00.123456Z",
          DurationSeconds: 90,
          PeakParticipantCount: 3,
          Participants: [
            { UserId: "a0000000-0000-4000-8000-000000000001", JoinedAt: "2026-03-01T11:00:00.000Z" },
            {
              UserId: "a0000000-0000-4000-8000-000000000002",
              JoinedAt: "2026-03-01T11:00:00.000001Z",
              LeftAt: "2026-03-01T11:30:00.000Z"
            }
          ],
          WasRecorded: true,
          RecordingId: "e0000000-0000-4000-8000-000000000001"
        },
        null,
        1
      )
    )
    assert.strictEqual(message.topic, "pin.messenger.conference-ended.v1")
    assert.strictEqual(message.eventType, "pin.messenger.conference-ended.v1")
    assert.strictEqual(message.messageKey, "dea10000-0000-4000-8000-000000000001")
    assert.strictEqual(message.createdAt, at("2026-03-01T12:00:00.123456Z"))
    assert.deepStrictEqual(message.headers, {
      "message-id": message.messageId,
      "event-type": "pin.messenger.conference-ended.v1",
      "correlation-id": "b0000000-0000-4000-8000-000000000007",
      traceparent,
      "content-type": "application/json"
    })
  })

  it("has one message id for each conference, for ever (W6)", () => {
    assert.strictEqual(Message.messageId(conferenceId(1)), "689b4e8a-cccf-54b1-a0a2-db46e7071548")
    assert.notStrictEqual(Message.messageId(conferenceId(2)), Message.messageId(conferenceId(1)))
    assert.strictEqual(messageOf().messageId, messageOf({ endReason: "Timeout" }).messageId)
  })

  it("leaves RecordingId out where there is no recording, or only failed ones (W3)", () => {
    for (const recordings of [[], [recording(1, "Failed")]]) {
      const payload = payloadOf(recordings)
      assert.strictEqual(payload.WasRecorded, false)
      assert.notProperty(payload, "RecordingId")
    }
  })

  it("names the newest recording that is not failed, available ones included (W3, W4)", () => {
    const payload = payloadOf([
      recording(1, "Available", "2026-03-01T11:00:00Z"),
      recording(2, "Available", "2026-03-01T11:10:00.000001Z"),
      recording(3, "Uploading", "2026-03-01T11:10:00Z"),
      recording(4, "Failed", "2026-03-01T11:20:00Z")
    ])
    assert.strictEqual(payload.WasRecorded, true)
    assert.strictEqual(payload.RecordingId, recordingId(2))
  })

  it("takes the last of two recordings of the same moment", () => {
    assert.strictEqual(payloadOf([recording(1, "Pending"), recording(2, "Pending")]).RecordingId, recordingId(2))
  })
})
