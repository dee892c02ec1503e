import { existsSync } from "node:fs"
import specification from "@asyncapi/specs/schemas/3.0.0-without-$id.json" with { type: "json" }
import { assert, describe, it } from "@effect/vitest"
import { Ajv } from "ajv"
import { parse } from "yaml"
import { schemas } from "../../contracts/Schemas.ts"
import * as ConferenceEnded from "../../src/domain/ConferenceEnded.ts"
import { endedEvent, traceparent } from "../contract/Fixtures.ts"
import { jobRunId } from "../support/Sessions.ts"
import { read, validator } from "./Contracts.ts"

const document = parse(read("asyncapi.yaml"))
const message = document.components.messages.conferenceEnded
const written = ConferenceEnded.fromEvent(endedEvent(1), jobRunId(1), traceparent)

const refsIn = (node: unknown): ReadonlyArray<string> =>
  typeof node === "object" && node !== null
    ? Object.entries(node).flatMap(([key, value]) => (key === "$ref" ? [String(value)] : refsIn(value)))
    : []

const resolves = (ref: string): boolean =>
  ref.startsWith("#/")
    ? ref
        .slice(2)
        .split("/")
        .reduce((node, key) => node?.[key], document) !== undefined
    : existsSync(new URL(`../../contracts/${ref}`, import.meta.url))

describe("The AsyncAPI document", () => {
  it("is valid AsyncAPI 3.0, and every reference in it leads somewhere (X1)", () => {
    const ajv = new Ajv({ strict: false, validateFormats: false })
    const validate = ajv.compile(specification)
    assert.isTrue(validate(document), ajv.errorsText(validate.errors))
    assert.isFalse(validate({ ...document, channels: { conferenceEnded: { adress: "typo" } } }))
    const refs = refsIn(document)
    assert.include(refs, "./conference-ended.schema.json")
    assert.deepStrictEqual(
      refs.filter((ref) => !resolves(ref)),
      []
    )
  })

  it("names the topic, the key and the headers that the worker writes (X1)", () => {
    const { address, bindings } = document.channels.conferenceEnded
    assert.deepStrictEqual([address, bindings.kafka.topic], [written.topic, written.topic])
    assert.isNull(validator(message.headers)(written.headers))
    assert.sameMembers(message.headers.required, Object.keys(written.headers))
    assert.sameMembers(Object.keys(message.headers.properties), Object.keys(written.headers))
    assert.isNull(validator(message.bindings.kafka.key)(written.messageKey))
    assert.strictEqual(
      message.bindings.kafka.key.pattern,
      Object(schemas["conference-ended"].properties).DealId.pattern
    )
  })
})
