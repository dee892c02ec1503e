/**
 * The SLO on a virtual clock: the real loop on the in-memory ports, thousands of generated room lives, and every kind of
 * trouble. `slo/Model.ts` and `slo/Bound.ts` state what holds; the broken builds show that the statement can fail.
 *
 * A failure prints a replay token and the smallest plan found: give the token as `replay` to `check` to play it again.
 * SLO_RUNS and SLO_SEED search further than the suite does.
 */
import { describe, expect, it } from "@effect/vitest"
import { Config, Effect } from "effect"
import { real } from "../slo/Build.ts"
import { Clause } from "../slo/Clause.ts"
import { mutants } from "../slo/Mutants.ts"
import { check, checkClause, emptyTally, exact, plain, report } from "../slo/Property.ts"

const seed = Config.String("SLO_SEED").pipe(Config.withDefault("room lives"))
const runs = Config.Int("SLO_RUNS").pipe(Config.withDefault(120))

/** Long enough for SLO_RUNS in the thousands; the suite's own runs take seconds. */
const timeout = 600_000

describe("the SLO on a virtual clock", () => {
  it.effect(
    "closes every room at the first tick that can, misses none without a reason and closes no live room (S1, S2, S3, R1-R6, R9, L1, L2, L4, T6)",
    () =>
      Effect.gen(function* () {
        const tally = emptyTally()
        const outcome = yield* check(exact, real, { runs: yield* runs, seed: yield* seed }, tally)
        expect(report(outcome)).toBe("Passed")
        expect(tally.rooms).toBeGreaterThan(3000)
        const told = ["empty-room", "provision-timeout", "stale-live", "at the first tick", "after an overrun"]
        const missed = ["busy", "failed", "full", "overrun", "locked"]
        for (const what of [...told, ...missed]) expect(tally.counts.get(what), what).toBeGreaterThan(20)
      }),
    timeout
  )

  it.effect(
    "closes every room by its due moment plus one interval while nothing is in the way (S1, S2)",
    () =>
      Effect.gen(function* () {
        const outcome = yield* check(plain, real, { runs: Math.ceil((yield* runs) / 2), seed: yield* seed })
        expect(report(outcome)).toBe("Passed")
      }),
    timeout
  )
})

describe("a broken build", () => {
  for (const { name, build, breaks } of mutants) {
    it.effect(
      `that ${name} breaks "${breaks}"`,
      () =>
        Effect.gen(function* () {
          const outcome = yield* checkClause(exact, build, breaks, { runs: 150, seed: "broken", maxShrinks: 0 })
          expect(report(outcome)).toContain(`${breaks}: `)
        }),
      timeout
    )
  }

  for (const { name, build } of mutants.filter(({ breaksPlain }) => breaksPlain)) {
    it.effect(
      `that ${name} breaks S1 or S2 where nothing is in the way`,
      () =>
        Effect.gen(function* () {
          const outcome = yield* check(plain, build, { runs: 150, seed: "broken", maxShrinks: 0 })
          expect(report(outcome)).toContain("by-due-and-interval: ")
        }),
      timeout
    )
  }

  it("stands for every clause but the bound, which follows from the others", () => {
    const broken = new Set<Clause>(mutants.map(({ breaks }) => breaks)).add("by-due-and-interval").add("bound")
    expect(Clause.literals.filter((clause) => !broken.has(clause))).toEqual([])
  })
})
