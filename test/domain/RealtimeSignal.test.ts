import { assert, describe, it } from "@effect/vitest"
import { emptyRoom, provisionTimeout } from "../../src/domain/Phase.ts"
import * as Signal from "../../src/domain/RealtimeSignal.ts"
import { asOf, due, eventOf, toSession, traceparent } from "../contract/Fixtures.ts"
import { jobRunId } from "../support/Sessions.ts"

describe("RealtimeSignal", () => {
  for (const [phase, signal] of [
    [emptyRoom, "Ended"],
    [provisionTimeout, "Failed"]
  ] as const) {
    it(`tells the chat of a conference that ${phase.name} closed, in ids and enums alone (W1, W2, INV-CONF-7)`, () => {
      assert.deepStrictEqual(Signal.fromEvent(eventOf(phase, due(phase, 1)), jobRunId(7), traceparent), {
        kind: "ConferenceEnded",
        targetKind: "ChatGroup",
        chatId: toSession(due(phase, 1)).chatId,
        sessionKind: "Conference",
        sessionId: due(phase, 1).id,
        signal,
        headers: { "correlation-id": jobRunId(7), traceparent },
        createdAt: asOf
      })
    })
  }
})
