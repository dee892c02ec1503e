/** The property that every build is put to: a plan played and judged. The tally tells what the plays had in them. */
import { Arbitrary, Effect } from "effect"
import type { Build } from "./Build.ts"
import { Violated } from "./Clause.ts"
import { drive } from "./Drive.ts"
import * as Ledger from "./Ledger.ts"
import * as Model from "./Model.ts"
import type { Plan } from "./Plan.ts"

export interface Tally {
  rooms: number
  ticks: number
  readonly counts: Map<string, number>
}

export const emptyTally = (): Tally => ({ rooms: 0, ticks: 0, counts: new Map() })

const count = (tally: Tally, what: string) => tally.counts.set(what, (tally.counts.get(what) ?? 0) + 1)

const add = (tally: Tally, plan: Plan, model: Model.Model) => {
  tally.rooms += plan.lives.length
  tally.ticks += model.ticks.length
  for (const { rule, misses, overrun } of model.waited) {
    count(tally, rule)
    for (const miss of misses) count(tally, miss)
    if (overrun) count(tally, "after an overrun")
    else if (misses.length === 0) count(tally, "at once")
  }
}

/** Plays one plan; fails with the first clause that it breaks. */
export const holds = (build: Build, plan: Plan, tally = emptyTally()) =>
  Effect.gen(function* () {
    const story = yield* drive(plan, build)
    const model = Model.follow(story)
    if (model instanceof Violated) return yield* model
    const wrong = Ledger.check(story, model)
    if (wrong !== undefined) return yield* wrong
    add(tally, plan, model)
    return true
  })

export const check = (
  build: Build,
  plans: Arbitrary.Arbitrary<Plan>,
  options: Arbitrary.CheckOptions,
  tally?: Tally
): Effect.Effect<Arbitrary.CheckResult<Plan, Violated>> =>
  Arbitrary.checkEffect(plans, (plan) => holds(build, plan, tally), options)
