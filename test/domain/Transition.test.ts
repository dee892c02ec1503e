import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { ConferenceSession } from "../../src/domain/ConferenceSession.ts"
import * as Instant from "../../src/domain/Instant.ts"
import * as Phase from "../../src/domain/Phase.ts"
import { decide } from "../../src/domain/Transition.ts"
import { asOf, due, noDetails, scan, toSession, windows } from "../contract/Fixtures.ts"
import { microsecondsAfter } from "../support/Sessions.ts"

const decided = (phase: Phase.Phase, changes: Partial<ConferenceSession> = {}) =>
  decide(phase, windows, asOf, { ...toSession(due(phase, 1)), ...changes }, noDetails)

const refusal = (phase: Phase.Phase, changes: Partial<ConferenceSession>) => {
  const outcome = decided(phase, changes)
  return Result.isFailure(outcome) ? outcome.failure.reason : "accepted"
}

describe("Transition.decide", () => {
  for (const phase of Phase.all) {
    const { cutoff } = scan(phase)

    it(`${phase.name}: accepts at exactly the due moment and refuses a microsecond before it (T3)`, () => {
      assert.isTrue(Result.isSuccess(decided(phase, { [phase.since]: cutoff })))
      assert.match(refusal(phase, { [phase.since]: microsecondsAfter(cutoff, 1n) }), /^due only at /)
    })

    it(`${phase.name}: refuses every status but ${phase.from} (T3, INV-CONF-4)`, () => {
      const statuses = ["Provisioning", "Active", "Ended", "Failed"] as const
      const accepted = statuses.filter((status) => refusal(phase, { status }) === "accepted")
      assert.deepStrictEqual(accepted, [phase.from])
    })

    it(`${phase.name}: says which phase refused which session (T4)`, () => {
      const outcome = decided(phase, { status: "Ended" })
      assert.isTrue(Result.isFailure(outcome) && outcome.failure._tag === "TransitionRejected")
      assert.isTrue(Result.isFailure(outcome) && outcome.failure.phase === phase.name)
    })

    it(`${phase.name}: records what decided (W7)`, () => {
      const since = microsecondsAfter(cutoff, -5n)
      const { facts } = Result.getOrThrow(decided(phase, { [phase.since]: since }))
      assert.strictEqual(facts.phase, phase.name)
      assert.strictEqual(facts.asOf, asOf)
      assert.strictEqual(facts.dueAt, microsecondsAfter(asOf, -5n))
      assert.strictEqual(facts[phase.since], since)
    })
  }

  it("refuses the empty-room phase for any count but 0, and takes no notice of it in the others (R1, R3, T3)", () => {
    for (const activeParticipantCount of [1, -1]) {
      assert.match(refusal(Phase.emptyRoom, { activeParticipantCount }), /^active_participant_count is /)
      assert.strictEqual(refusal(Phase.staleLive, { activeParticipantCount }), "accepted")
      assert.strictEqual(refusal(Phase.provisionTimeout, { activeParticipantCount }), "accepted")
    }
  })

  for (const phase of [Phase.emptyRoom, Phase.staleLive]) {
    it(`${phase.name}: refuses a meeting without a deal, without a start, or with one after AsOf (T3)`, () => {
      assert.match(refusal(phase, { dealId: null }), /^deal_id is missing/)
      assert.match(refusal(phase, { startedAt: null }), /^started_at is missing/)
      assert.match(refusal(phase, { startedAt: microsecondsAfter(asOf, 1n) }), /^started_at .* is after AsOf/)
      assert.strictEqual(refusal(phase, { startedAt: asOf }), "accepted")
    })

    it(`${phase.name}: refuses a duration that does not fit its column (T4)`, () => {
      const longest = microsecondsAfter(asOf, -2_147_483_648n * 1_000_000n + 1n)
      assert.strictEqual(refusal(phase, { startedAt: longest }), "accepted")
      assert.match(refusal(phase, { startedAt: microsecondsAfter(longest, -1n) }), /does not fit/)
    })

    it(`${phase.name}: raises ConferenceEnded with a duration in whole seconds (R4, W5)`, () => {
      const event = Result.getOrThrow(decided(phase, { startedAt: microsecondsAfter(asOf, -61_999_999n) }))
      assert.isTrue(event._tag === "ConferenceEnded" && event.durationSeconds === 61)
      assert.strictEqual(event.status, "Ended")
      assert.strictEqual(event.endReason, phase.endReason)
    })
  }

  it("fails a provision that has no deal and no start: there was no meeting (R2, W2)", () => {
    const event = Result.getOrThrow(decided(Phase.provisionTimeout, { dealId: null, startedAt: null }))
    assert.strictEqual(event._tag, "ConferenceProvisionFailed")
    assert.strictEqual(event.status, "Failed")
    assert.strictEqual(event.endReason, "Error")
    assert.notProperty(event, "durationSeconds")
  })

  it("hands roster and recordings on to the event as they are (W3)", () => {
    const session = toSession(due(Phase.emptyRoom, 1))
    const event = Result.getOrThrow(decide(Phase.emptyRoom, windows, asOf, session, noDetails))
    assert.isTrue(event._tag === "ConferenceEnded" && event.participants === noDetails.participants)
    assert.isTrue(event._tag === "ConferenceEnded" && event.recordings === noDetails.recordings)
  })

  it("explains the due moment in words (T4)", () => {
    const { cutoff } = scan(Phase.emptyRoom)
    const reason = refusal(Phase.emptyRoom, { lastActivityAt: microsecondsAfter(cutoff, 1n) })
    assert.strictEqual(reason, `due only at ${Instant.format(microsecondsAfter(asOf, 1n))}`)
  })
})
