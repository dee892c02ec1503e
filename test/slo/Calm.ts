/**
 * S1 and S2 to the letter, by the rows alone: no tick, no lock and no record is looked at. For calm plans, in which no
 * more rooms fall due than a batch holds and every cycle is shorter than the interval.
 */
import { Violated } from "./Clause.ts"
import { dueAt, plusMillis, rules } from "./Rules.ts"
import type { Story } from "./Story.ts"

export const check = ({ plan, sessions, endedAt }: Story): Violated | undefined => {
  const { settings } = plan
  const startsAt = BigInt(plan.startsAt) * 1000n
  const violated = (detail: string) => new Violated({ clause: "by-due-and-interval", detail })
  for (const row of sessions) {
    const rule = rules.find(({ becomes, isOpenTo }) => becomes.endReason === row.endReason || isOpenTo(row))
    if (rule === undefined) continue
    const due = dueAt(rule, settings, row)
    const latest = plusMillis(due, settings.interval)
    // Nobody looks before the worker starts, and its first tick is then at once.
    const last = latest < startsAt ? startsAt : latest
    if (typeof row.endedAt !== "bigint") {
      if (last <= endedAt) return violated(`${row.id}, due at ${due}, is still open at ${endedAt}`)
    } else if (row.endedAt < due || row.endedAt > last) {
      return violated(`${row.id}, due at ${due}, closed at ${row.endedAt}`)
    }
  }
  return undefined
}
