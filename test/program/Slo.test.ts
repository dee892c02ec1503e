import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Effect } from "effect"
import { real } from "../slo/Build.ts"
import { plans } from "../slo/Plan.ts"
import { check, emptyTally } from "../slo/Property.ts"

describe("SLO", () => {
  it.effect(
    "holds",
    () =>
      Effect.gen(function* () {
        const tally = emptyTally()
        const t0 = performance.now()
        const result = yield* check(real, plans, { runs: 60, seed: "slo", maxShrinks: 300 }, tally)
        console.log(performance.now() - t0, tally)
        const f = Arbitrary.formatCheckFailure(result)
        console.log(f?.slice(0, 6000))
        expect(result._tag).toBe("Passed")
      }),
    120000
  )
})
