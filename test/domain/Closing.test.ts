import { assert, describe, it } from "@effect/vitest"
import * as Closing from "../../src/domain/Closing.ts"
import * as Message from "../../src/domain/ConferenceEnded.ts"
import { emptyRoom, provisionTimeout } from "../../src/domain/Phase.ts"
import { asOf, due, eventOf } from "../contract/Fixtures.ts"
import { conferenceId, jobRunId, microsecondsAfter } from "../support/Sessions.ts"

describe("Closing", () => {
  it("keeps the facts that decided, and the message that went out (W7)", () => {
    const row = { ...due(emptyRoom, 1), lastActivityAt: microsecondsAfter(asOf, -100_000_000n) }
    assert.deepStrictEqual(Closing.fromEvent(eventOf(emptyRoom, row), jobRunId(7)), {
      conferenceId: conferenceId(1),
      phase: "empty-room",
      status: "Ended",
      endReason: "EmptyTimeout",
      asOf,
      dueAt: microsecondsAfter(asOf, -10_000_000n),
      jobRunId: jobRunId(7),
      messageId: Message.messageId(conferenceId(1)),
      evidence: {
        lastActivityAt: "2026-03-01T11:58:20.123456Z",
        createdAt: "2026-03-01T11:58:30.123456Z",
        startedAt: "2026-03-01T11:58:30.123456Z",
        activeParticipantCount: 0,
        windowMillis: 90_000
      }
    })
  })

  it("has no message id and no start for a failed provision (W2)", () => {
    const closing = Closing.fromEvent(eventOf(provisionTimeout, due(provisionTimeout, 1)), jobRunId(7))
    assert.strictEqual(closing.messageId, null)
    assert.strictEqual(closing.evidence.startedAt, null)
    assert.strictEqual(closing.status, "Failed")
  })
})
