import { assert, describe, it } from "@effect/vitest"
import { RecordingId } from "../../src/domain/ConferenceSession.ts"
import { forRecordings } from "../../src/domain/StopRequest.ts"
import { asOf, statuses } from "../contract/Fixtures.ts"
import { conferenceId, recordingId } from "../support/Sessions.ts"

describe("StopRequest", () => {
  it("asks for every recording that may still run, and for no other (R10)", () => {
    const recordings = statuses.map((status, n) => ({
      id: RecordingId.make(recordingId(n)),
      status,
      externalRef: n === 0 ? null : `job-${n}`,
      createdAt: asOf
    }))
    const common = { conferenceId: conferenceId(1), reason: "Timeout" as const }
    assert.deepStrictEqual(forRecordings(conferenceId(1), "Timeout", recordings), [
      { recordingId: RecordingId.make(recordingId(0)), externalRef: null, ...common },
      { recordingId: RecordingId.make(recordingId(1)), externalRef: "job-1", ...common },
      { recordingId: RecordingId.make(recordingId(2)), externalRef: "job-2", ...common }
    ])
  })

  it("asks for nothing where nothing was recorded (R10)", () => {
    assert.deepStrictEqual(forRecordings(conferenceId(1), "Timeout", []), [])
  })
})
