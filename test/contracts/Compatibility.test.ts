import { assert, describe, it } from "@effect/vitest"
import { breaks } from "../../contracts/Compatibility.ts"
import { fileName, names, schemas } from "../../contracts/Schemas.ts"
import { readJson } from "./Contracts.ts"

interface Mutable {
  properties: Record<string, Mutable>
  items: Mutable
  required: Array<string>
  enum: Array<string>
  [keyword: string]: unknown
}

/** The released event schema with one change. */
const changed = (change: (schema: Mutable) => void) => {
  const released: Mutable = Object(readJson(`released/${fileName("conference-ended")}`))
  const current = structuredClone(released)
  change(current)
  return breaks(released, current)
}

const field = (schema: Mutable, name: string): Mutable => {
  const node = schema.properties[name]
  if (node === undefined) throw new Error(`no field ${name}`)
  return node
}

const remove = (schema: Mutable, name: string) => {
  delete schema.properties[name]
  schema.required = schema.required.filter((other) => other !== name)
}

const rename = (schema: Mutable, from: string, to: string) => {
  schema.properties[to] = field(schema, from)
  remove(schema, from)
}

const participant = (schema: Mutable) => field(schema, "Participants").items
const text = { type: "string" } as unknown as Mutable

describe("The compatibility rule", () => {
  for (const name of names) {
    it(`is kept by ${name}: nothing released is removed, renamed, narrowed or newly required`, () => {
      assert.deepStrictEqual(breaks(readJson(`released/${fileName(name)}`), schemas[name]), [])
    })
  }

  const caught: ReadonlyArray<readonly [string, (schema: Mutable) => void, string]> = [
    ["a removed field", (s) => remove(s, "ChatId"), "/ChatId: removed or renamed"],
    ["a removed optional field", (s) => remove(s, "RecordingId"), "/RecordingId: removed or renamed"],
    ["a removed inner field", (s) => remove(participant(s), "LeftAt"), "/Participants[]/LeftAt: removed or renamed"],
    ["a renamed field", (s) => rename(s, "RecordingId", "RecordId"), "/RecordingId: removed or renamed"],
    [
      "another type",
      (s) => Object.assign(field(s, "DurationSeconds"), { type: "string" }),
      "/DurationSeconds: type changed"
    ],
    [
      "a smaller range",
      (s) => Object.assign(field(s, "DurationSeconds"), { minimum: 1 }),
      "/DurationSeconds: minimum changed"
    ],
    ["a new bound", (s) => Object.assign(field(s, "Participants"), { maxItems: 9 }), "/Participants: maxItems changed"],
    ["another pattern", (s) => Object.assign(field(s, "DealId"), { pattern: "^x" }), "/DealId: pattern changed"],
    ["a lost value", (s) => field(s, "MediaType").enum.shift(), "/MediaType/Audio: no longer allowed"],
    [
      "a new value",
      (s) => field(s, "MediaType").enum.push("Hologram"),
      "/MediaType/Hologram: a value that readers do not know"
    ],
    ["a field required now", (s) => s.required.push("RecordingId"), "/RecordingId: required now"],
    [
      "an inner field required now",
      (s) => participant(s).required.push("LeftAt"),
      "/Participants[]/LeftAt: required now"
    ],
    [
      "a new field that is required",
      (s) => {
        s.properties.Topic = text
        s.required.push("Topic")
      },
      "/Topic: required now"
    ],
    ["a field no longer sent always", (s) => s.required.shift(), "/ConferenceId: no longer always there"],
    ["a closed object", (s) => Object.assign(s, { additionalProperties: false }), ": additionalProperties changed"]
  ]
  for (const [what, change, found] of caught) {
    it(`is broken by ${what}`, () => assert.include(changed(change), found))
  }

  it("lets optional fields be added at any depth, and words be changed", () => {
    const found = changed((schema) => {
      schema.properties.Title = text
      participant(schema).properties.Device = text
      schema.required.reverse()
      Object.assign(field(schema, "WasRecorded"), { description: "other words", title: "t", examples: [true] })
    })
    assert.deepStrictEqual(found, [])
  })
})
