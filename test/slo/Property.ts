/** The property that every build is put to: a plan played and judged. The tally tells what the plays had in them. */
import { Arbitrary, Effect } from "effect"
import type { Build } from "./Build.ts"
import * as Calm from "./Calm.ts"
import { type Clause, Violated } from "./Clause.ts"
import { drive } from "./Drive.ts"
import * as Ledger from "./Ledger.ts"
import * as Model from "./Model.ts"
import { calm, type Plan, plans } from "./Plan.ts"
import type { Story } from "./Story.ts"

export interface Tally {
  rooms: number
  ticks: number
  /** Closed rooms by phase, missed ticks by reason, rooms closed at the first tick after their due moment. */
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
    else if (misses.length === 0) count(tally, "at the first tick")
  }
}

/** Judges one story by the model: the whole statement. */
const judge = (story: Story, tally: Tally): Violated | undefined => {
  const model = Model.follow(story)
  if (model instanceof Violated) return model
  const wrong = Ledger.check(story, model)
  if (wrong === undefined) add(tally, story.plan, model)
  return wrong
}

export interface Property {
  readonly plans: Arbitrary.Arbitrary<Plan>
  readonly judge: (story: Story, tally: Tally) => Violated | undefined
}

/** Under all kinds of trouble: the exact statement. */
export const exact: Property = { plans, judge }

/** Without trouble: S1 and S2 as they stand. */
export const plain: Property = { plans: Arbitrary.map(plans, calm), judge: (story) => Calm.check(story) }

const holds = (property: Property, build: Build, plan: Plan, tally: Tally) =>
  Effect.flatMap(drive(plan, build), (story) => {
    const wrong = property.judge(story, tally)
    return wrong === undefined ? Effect.succeed(true) : Effect.fail(wrong)
  })

export type Outcome = Arbitrary.CheckResult<Plan, Violated>

export const check = (
  property: Property,
  build: Build,
  options: Arbitrary.CheckOptions,
  tally: Tally = emptyTally()
): Effect.Effect<Outcome> =>
  Arbitrary.checkEffect(property.plans, (plan) => holds(property, build, plan, tally), { size: 60, ...options })

/** The same, blind to all clauses but one. */
export const checkClause = (
  property: Property,
  build: Build,
  clause: Clause,
  options: Arbitrary.CheckOptions
): Effect.Effect<Outcome> =>
  Arbitrary.checkEffect(
    property.plans,
    (plan) =>
      holds(property, build, plan, emptyTally()).pipe(
        Effect.catchIf(
          (violated) => violated.clause !== clause,
          () => Effect.succeed(true)
        )
      ),
    { size: 60, ...options }
  )

/** One line when it holds; else the clause, the token that plays it again (`replay`), and the smallest plan found. */
export const report = (outcome: Outcome): string => {
  if (outcome._tag !== "Falsified") return outcome._tag
  const what = outcome.failure._tag === "PropertyError" ? outcome.failure.error.message : "false"
  return `${what}\nreplay: ${outcome.replay}\nplan: ${JSON.stringify(outcome.shrunkInput)}`
}
