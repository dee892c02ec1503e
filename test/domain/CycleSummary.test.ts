import { assert, describe, it } from "@effect/vitest"
import * as CycleSummary from "../../src/domain/CycleSummary.ts"
import { asOf } from "../contract/Fixtures.ts"
import { jobRunId } from "../support/Sessions.ts"

const run = { jobRunId: jobRunId(1), asOf, outcome: "completed", durationMs: 12, error: null } as const

describe("CycleSummary", () => {
  it("adds up what the phases did, each outcome for itself", () => {
    const first = CycleSummary.addReaped(CycleSummary.noCounts, "empty_timeout", 2)
    const second = CycleSummary.addReaped(first, "provision_failed", 3)
    const third = CycleSummary.addReaped(CycleSummary.addReaped(second, "stale_timeout", 4), "empty_timeout", 1)
    const counts = CycleSummary.addPoison(CycleSummary.addSkippedLocked(third, 5), 6)
    const { emptyTimeoutCount, provisionFailedCount, staleTimeoutCount, skippedLockedCount, poisonCount } =
      CycleSummary.make(run, CycleSummary.addPoison(CycleSummary.addSkippedLocked(counts, 1), 1))
    assert.deepStrictEqual(
      [emptyTimeoutCount, provisionFailedCount, staleTimeoutCount, skippedLockedCount, poisonCount],
      [3, 3, 4, 6, 7]
    )
  })

  it("leaves the counts it adds to as they were", () => {
    CycleSummary.addReaped(CycleSummary.noCounts, "empty_timeout", 2)
    assert.deepStrictEqual(CycleSummary.noCounts.reaped, { empty_timeout: 0, provision_failed: 0, stale_timeout: 0 })
  })

  it("prints exactly the names that the interface fixes, in their order", () => {
    const summary = CycleSummary.make({ ...run, error: "not printed" }, CycleSummary.noCounts)
    assert.strictEqual(
      JSON.stringify(CycleSummary.toJson(summary)),
      '{"jobRunId":"b0000000-0000-4000-8000-000000000001","asOf":"2026-03-01T12:00:00.123456Z","outcome":"completed",' +
        '"emptyTimeoutCount":0,"provisionFailedCount":0,"staleTimeoutCount":0,"skippedLockedCount":0,"poisonCount":0,' +
        '"durationMs":12}'
    )
  })
})
