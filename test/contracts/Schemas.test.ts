import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { fileName, fileText, names, schemas } from "../../contracts/Schemas.ts"
import * as ConferenceEnded from "../../src/domain/ConferenceEnded.ts"
import { RecordingId, UserId } from "../../src/domain/ConferenceSession.ts"
import { HubPush } from "../../src/domain/RealtimeSignal.ts"
import { StopRequest } from "../../src/domain/StopRequest.ts"
import { endedEvent, traceparent } from "../contract/Fixtures.ts"
import { at, jobRunId, recordingId, userId } from "../support/Sessions.ts"
import { list, read, readJson, validator } from "./Contracts.ts"

const codecs = { "conference-ended": ConferenceEnded.Payload, "recorder-stop": StopRequest, "hub-push": HubPush }

describe("The contract schemas", () => {
  for (const name of names) {
    const examples = list("examples").filter((file) => file === `${name}.json` || file.startsWith(`${name}.`))
    const valid = validator(schemas[name])

    it(`say of ${name} what the worker's own schema says: npm run contracts writes the file anew (W3)`, () => {
      assert.strictEqual(read(fileName(name)), fileText(name))
    })

    it(`take the examples of ${name}, as the worker does and as the released schema does`, () => {
      assert.isAbove(examples.length, 1)
      const released = validator(readJson(`released/${fileName(name)}`))
      const codec = Schema.toCodecJson(codecs[name])
      for (const file of examples) {
        const example = readJson(`examples/${file}`)
        assert.isNull(valid(example), file)
        assert.isNull(released(example), file)
        assert.deepStrictEqual(Schema.encodeUnknownSync(codec)(Schema.decodeUnknownSync(codec)(example)), example, file)
      }
    })

    it(`refuse ${name} without one of the fields that are always there`, () => {
      const example = Object(readJson(`examples/${name}.json`))
      const required = schemas[name].required
      assert.isArray(required)
      for (const field of Array.isArray(required) ? required : []) {
        const { [field]: _, ...rest } = example
        assert.match(valid(rest) ?? "", new RegExp(`'${field}'`))
      }
    })
  }

  it("belong to every example and every released schema", () => {
    const known = (file: string) => names.some((name) => file.startsWith(`${name}.`))
    assert.isTrue([...list("examples"), ...list("released")].every(known))
  })

  it("take what the worker writes for an ended conference, far years included (W3)", () => {
    const valid = validator(schemas["conference-ended"])
    const event = endedEvent(1)
    const participant = { userId: UserId.make(userId(1)), joinedAt: at("2026-03-01T11:00:00.000001Z"), leftAt: null }
    const recording = { id: RecordingId.make(recordingId(1)), status: "Uploading", externalRef: null } as const
    for (const changes of [
      {},
      { participants: [participant, { ...participant, leftAt: at("12026-03-01T11:00:00Z") }] },
      { recordings: [{ ...recording, createdAt: event.startedAt }], peakParticipantCount: -1 }
    ]) {
      const { payload } = ConferenceEnded.fromEvent({ ...event, ...changes }, jobRunId(1), traceparent)
      assert.isNull(valid(JSON.parse(JSON.stringify(payload))))
    }
  })
})
