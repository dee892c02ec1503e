/**
 * The SLO as a pure model: from what was recorded of ticks, locks and the messenger's writes it works out which rooms
 * each batch had to close, and compares with those it did close, both ways.
 *
 * A batch that commits closes exactly the BatchSize oldest rooms of those that are due at AsOf by their facts at the
 * claim and that nobody has locked (R1 to R3, R6, T2), with EndedAt = AsOf, the moment of the lock (L2, R4). Ticks start
 * one interval apart, or at once after one that took longer (L1). A phase fixes nothing only when the lock was busy, it
 * failed itself, the lock or the database was gone, or MaxRunDuration was over (T6, L4). Bound.ts has what follows.
 */
import type { Instant } from "../../src/domain/Instant.ts"
import type { SessionRow } from "../support/Sessions.ts"
import * as Bound from "./Bound.ts"
import { Violated } from "./Clause.ts"
import type { Plan } from "./Plan.ts"
import { closed, inOrder, isDue, plusMillis, rules, sameRow } from "./Rules.ts"
import type { Entry, Story } from "./Story.ts"
import * as Tick from "./Tick.ts"

export interface Model {
  readonly plan: Plan
  /** What must be in the table. */
  readonly rooms: Map<string, SessionRow>
  readonly locked: Set<string>
  /** The last one may still be running. */
  readonly ticks: Array<Tick.Tick>
  /** How each closed room had waited. */
  readonly waited: Array<Bound.Waited & { readonly rule: string }>
}

type Of<Tag extends Entry["_tag"]> = Extract<Entry, { readonly _tag: Tag }>
type Verdict = Violated | undefined

const { violated } = Tick

const onTick = (model: Model, { at }: Of<"Tick">): Verdict => {
  const { plan, ticks } = model
  const before = ticks.at(-1)
  const expected = before === undefined ? BigInt(plan.startsAt) * 1000n : Tick.nextStart(before, plan.settings)
  const turns = before === undefined ? undefined : Tick.checkTurns(before, plan.settings)
  ticks.push(Tick.begin(at, plan.faults[ticks.length]))
  if (before?.isWaiting === true) return violated("one-at-a-time", `a tick at ${at} upon that of ${before.start}`)
  if (turns !== undefined) return turns
  return at === expected ? undefined : violated("spacing", `tick ${ticks.length} at ${at}, not at ${expected}`)
}

const phaseOf = (tick: Tick.Tick, index: number): Tick.PhaseRun => {
  while (tick.phases.length <= index) tick.phases.push(Tick.newPhase())
  return tick.phases[index] ?? Tick.newPhase()
}

/** What the claim has to take now. */
const predict = (model: Model, tick: Tick.Tick, index: number) => {
  const rule = rules[index]
  if (rule === undefined) return
  const phase = phaseOf(tick, index)
  const { settings } = model.plan
  const due = [...model.rooms.values()].filter(
    (row) => !model.locked.has(row.id) && isDue(rule, settings, row, tick.asOf)
  )
  const oldestFirst = inOrder(rule, due)
  phase.claimed = oldestFirst.slice(0, settings.batchSize)
  phase.leftByFull = new Set(oldestFirst.slice(settings.batchSize).map((row) => row.id))
  phase.locked = new Set(model.locked)
}

const toMillis = (at: Instant): Instant => plusMillis(at, -Number(at % 1000n) / 1000)

const onOperation = (model: Model, tick: Tick.Tick, { operation, phase, at }: Of<"Operation">): Verdict => {
  tick.end = at
  if (operation === "lock") tick.asOf = toMillis(at)
  else if (tick.fault.kind === "busy") return violated("busy-is-idle", `${operation} on a tick without the lock`)
  if (operation === "claim" && phaseOf(tick, phase).claimed === undefined) predict(model, tick, phase)
  if (operation === "recordPoison") return violated("nothing-refused", `a room was refused at ${at}`)
  const isLate = operation === "apply" && at > plusMillis(tick.start, model.plan.settings.maxRun)
  return isLate ? violated("max-run", `a write at ${at} in the cycle of ${tick.start}`) : undefined
}

const onInjured = (tick: Tick.Tick, { operation, phase, at }: Of<"Injured">): Verdict => {
  tick.end = at
  tick.injured = { operation, phase }
  if (operation === "lock") tick.asOf = toMillis(at)
  if (operation === "backlog" || tick.fault.kind === "outage") tick.backlogCounted = false
  return undefined
}

const onFixed = (model: Model, tick: Tick.Tick, { phase: index, changed, at }: Of<"Fixed">): Verdict => {
  const { plan, rooms } = model
  const rule = rules[index]
  const phase = phaseOf(tick, index)
  tick.end = at
  phase.fixed = true
  if (rule === undefined || phase.claimed === undefined) {
    return violated("every-phase-has-its-turn", `phase ${index} committed without a claim`)
  }
  const expected = new Map(phase.claimed.map((row) => [row.id, row]))
  for (const row of changed) {
    const before = rooms.get(row.id)
    if (before === undefined || !isDue(rule, plan.settings, before, tick.asOf)) {
      return violated("no-live-room", `${row.id} was not due for ${rule.name} at ${tick.asOf}`)
    }
    if (!expected.delete(row.id)) return violated("oldest-first", `${row.id} was not its turn at ${tick.asOf}`)
    if (!sameRow(row, closed(rule, before, tick.asOf))) return violated("written-as-of", `${row.id} at ${tick.asOf}`)
    const waited = Bound.check(plan, rule, before, model.ticks.slice(0, -1), tick)
    if (waited instanceof Violated) return waited
    model.waited.push({ ...waited, rule: rule.name })
    rooms.set(row.id, row)
  }
  for (const id of expected.keys()) return violated("on-time", `${id} was left open by ${rule.name} at ${tick.asOf}`)
  return undefined
}

const onGauge = (model: Model, tick: Tick.Tick, { shown }: Of<"Gauge">): Verdict => {
  const { settings } = model.plan
  const overdue = [...model.rooms.values()].filter((row) =>
    rules.some((rule) => isDue(rule, settings, row, tick.asOf))
  ).length
  if (tick.backlogCounted && shown !== overdue) return violated("backlog", `the gauge shows ${shown}, not ${overdue}`)
  if (Tick.isClean(tick) && overdue > 0) return violated("backlog", `${overdue} left at ${tick.asOf}`)
  return undefined
}

const onUnlocked = (model: Model, { room, before, after }: Of<"Unlocked">): Verdict => {
  model.locked.delete(room)
  if (!sameRow(before, model.rooms.get(room))) return violated("untouched", `${room} was changed by neither side`)
  if (after !== undefined) model.rooms.set(room, after)
  return undefined
}

const onEntry = (model: Model, entry: Entry): Verdict => {
  if (entry._tag === "Tick") return onTick(model, entry)
  if (entry._tag === "Unlocked") return onUnlocked(model, entry)
  if (entry._tag === "Locked") {
    model.locked.add(entry.room)
    return undefined
  }
  const tick = model.ticks.at(-1)
  if (tick === undefined) return violated("spacing", "the worker acts before its first tick")
  tick.isWaiting = entry._tag === "Delayed"
  if (entry._tag === "Operation") return onOperation(model, tick, entry)
  if (entry._tag === "Injured") return onInjured(tick, entry)
  if (entry._tag === "Fixed") return onFixed(model, tick, entry)
  if (entry._tag === "Gauge") return onGauge(model, tick, entry)
  tick.end = entry.at
  if (entry._tag === "CutOff" && entry.operation === "backlog") tick.backlogCounted = false
  return undefined
}

/** Whether a tick is missing between the last one and the end. */
const checkEnd = ({ plan, ticks }: Model, endedAt: Instant): Verdict => {
  const last = ticks.at(-1)
  if (last === undefined) return violated("spacing", "no tick at all")
  const next = Tick.nextStart(last, plan.settings)
  return next <= endedAt ? violated("spacing", `no tick at ${next}`) : Tick.checkTurns(last, plan.settings)
}

/** The first clause that the story breaks, or the model at its end. */
export const follow = (story: Story): Model | Violated => {
  const model: Model = { plan: story.plan, rooms: new Map(), locked: new Set(), ticks: [], waited: [] }
  for (const entry of story.entries) {
    const verdict = onEntry(model, entry)
    if (verdict !== undefined) return verdict
  }
  return checkEnd(model, story.endedAt) ?? model
}
