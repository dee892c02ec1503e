import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import {
  type Card,
  type Cards,
  type ConferenceEnded,
  onCallRecordingAvailable,
  onConferenceEnded,
  recordingOf
} from "../../docs/examples/Consumer.ts"
import { readJson } from "./Contracts.ts"

const file = (path: string) => readFileSync(new URL(`../../docs/${path}`, import.meta.url), "utf8")

const ended: ConferenceEnded = Object(readJson("examples/conference-ended.recorded.json"))
const other: ConferenceEnded = Object(readJson("examples/conference-ended.json"))
const { ConferenceId, RecordingId = assert.fail("the example was recorded") } = ended

type Apply = (cards: Cards) => Cards
const end: Apply = (cards) => onConferenceEnded(cards, ended)
const endOther: Apply = (cards) => onConferenceEnded(cards, other)
const recorded: Apply = (cards) => onCallRecordingAvailable(cards, { ConferenceId, RecordingId })
const recordedBefore: Apply = (cards) =>
  onCallRecordingAvailable(cards, { ConferenceId, RecordingId: "00000000-0000-4000-8000-000000000000" })

const cardsAfter = (...events: ReadonlyArray<Apply>): Cards =>
  events.reduce<Cards>((cards, apply) => apply(cards), new Map())
const cardAfter = (...events: ReadonlyArray<Apply>): Card =>
  cardsAfter(...events).get(ConferenceId) ?? assert.fail("there is a card")

describe("The consumer of docs/consumers.md", () => {
  it("is the very file that is tested here", () => {
    assert.include(file("consumers.md"), `\`\`\`ts\n${file("examples/Consumer.ts")}\`\`\``)
  })

  it("ends the same whichever event comes first", () => {
    assert.deepStrictEqual(cardAfter(recorded, end), cardAfter(end, recorded))
    assert.strictEqual(recordingOf(cardAfter(end, recorded)), "available")
    assert.deepStrictEqual(cardAfter(end, recorded).ended, ended)
  })

  it("has the whole card where the recording never becomes available, and waits for no more", () => {
    const card = cardAfter(end)
    assert.deepStrictEqual(card.ended, cardAfter(end, recorded).ended)
    assert.strictEqual(recordingOf(card), "processing")
  })

  it("says processing from the end of the conference until the recording is there (W4)", () => {
    assert.deepStrictEqual([cardAfter(end), cardAfter(end, recorded), cardAfter(recorded)].map(recordingOf), [
      "processing",
      "available",
      "available"
    ])
    assert.strictEqual(recordingOf({ ended: other, recordings: [] }), "none")
  })

  it("ends the same under any repeats, in any order, with several recordings and another conference (X1)", () => {
    const events = [end, recorded, recordedBefore, endOther]
    const once = cardsAfter(...events)
    // Every sequence of six: events missing, twice and in any order; then each of them comes at least once.
    for (let n = 0; n < 4 ** 6; n++) {
      const before = Array.from({ length: 6 }, (_, i) => events[Math.floor(n / 4 ** i) % 4] ?? end)
      const cards = cardsAfter(...before, ...events)
      assert.strictEqual(cards.size, once.size)
      for (const [id, card] of once) assert.deepStrictEqual(cards.get(id), card)
    }
  })

  it("lets the first end seen win over another of the same conference (X1)", () => {
    const late: Apply = (cards) => onConferenceEnded(cards, { ...ended, DurationSeconds: 1 })
    assert.deepStrictEqual(cardAfter(end, late), cardAfter(end))
  })
})
