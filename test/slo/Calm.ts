/**
 * S1 and S2 to the letter, by the rows alone: no tick, no lock and no record is looked at. For calm plans, in which no
 * more rooms fall due than a batch holds and every cycle is shorter than the interval.
 */
import { Instant } from "../../src/domain/Instant.ts"
import type { SessionRow } from "../support/Sessions.ts"
import { Violated } from "./Clause.ts"
import { dueAt, plusMillis, rules } from "./Rules.ts"
import type { Story } from "./Story.ts"

/** The row before anybody closed it. */
const opened = (row: SessionRow): SessionRow => ({ ...row, status: row.startedAt === null ? "Provisioning" : "Active" })

export const check = ({ plan, sessions, endedAt }: Story): Violated | undefined => {
  const { settings } = plan
  const violated = (detail: string) => new Violated({ clause: "by-due-and-interval", detail })
  for (const row of sessions) {
    if (row.endReason === "Completed") continue
    const applying = rules.filter((rule) => rule.isOpenTo(opened(row)))
    // Of two windows that apply, the first to end counts.
    const [due] = applying.map((rule) => dueAt(rule, settings, row)).toSorted((a, b) => Number(a - b))
    if (due === undefined) return violated(`no rule applies to ${row.id}`)
    const startsAt = plusMillis(Instant.make(0n), plan.startsAt)
    // Nobody looks before the worker starts, and then its first tick comes at once.
    const latest = plusMillis(due, settings.interval)
    const isLate = (moment: Instant) => moment > latest && moment > startsAt
    if (typeof row.endedAt !== "bigint") {
      if (isLate(endedAt)) return violated(`${row.id}, due at ${due}, is still open at ${endedAt}`)
      continue
    }
    const asWritten = applying.find(({ becomes }) => becomes.endReason === row.endReason)
    if (asWritten === undefined) return violated(`${row.id} became ${row.endReason}`)
    if (row.endedAt < due || isLate(row.endedAt)) return violated(`${row.id}, due at ${due}, closed at ${row.endedAt}`)
  }
  return undefined
}
