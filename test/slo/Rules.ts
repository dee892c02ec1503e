/** R1 to R3 once more, in the specification's words and apart from the program: who is due, since when, and as what. */
import { Instant } from "../../src/domain/Instant.ts"
import type { SessionRow } from "../support/Sessions.ts"
import type { Settings } from "./Plan.ts"

export interface Rule {
  readonly name: "empty-room" | "provision-timeout" | "stale-live"
  readonly isOpenTo: (row: SessionRow) => boolean
  readonly since: (row: SessionRow) => Instant
  readonly window: (settings: Settings) => number
  readonly becomes: { readonly status: "Ended" | "Failed"; readonly endReason: string }
}

const instant = (moment: SessionRow["createdAt"]): Instant => {
  if (typeof moment === "string") throw new Error("lives have finite moments")
  return moment
}

export const rules: ReadonlyArray<Rule> = [
  {
    name: "empty-room",
    isOpenTo: (row) => row.status === "Active" && row.activeParticipantCount === 0,
    since: (row) => instant(row.lastActivityAt),
    window: (settings) => settings.grace,
    becomes: { status: "Ended", endReason: "EmptyTimeout" }
  },
  {
    name: "provision-timeout",
    isOpenTo: (row) => row.status === "Provisioning",
    since: (row) => instant(row.createdAt),
    window: (settings) => settings.provision,
    becomes: { status: "Failed", endReason: "Error" }
  },
  {
    name: "stale-live",
    isOpenTo: (row) => row.status === "Active",
    since: (row) => instant(row.lastActivityAt),
    window: (settings) => settings.stale,
    becomes: { status: "Ended", endReason: "Timeout" }
  }
]

export const plusMillis = (moment: Instant, millis: number): Instant =>
  Instant.make(moment + BigInt(Math.round(millis * 1000)))

export const dueAt = (rule: Rule, settings: Settings, row: SessionRow): Instant =>
  plusMillis(rule.since(row), rule.window(settings))

export const isDue = (rule: Rule, settings: Settings, row: SessionRow, asOf: Instant): boolean =>
  rule.isOpenTo(row) && dueAt(rule, settings, row) <= asOf

/** Oldest first, then by id. */
export const inOrder = (rule: Rule, rows: ReadonlyArray<SessionRow>): ReadonlyArray<SessionRow> =>
  rows.toSorted((a, b) => Number(rule.since(a) - rule.since(b)) || (a.id < b.id ? -1 : 1))

/** The row as the rule closes it (R4). */
export const closed = (rule: Rule, row: SessionRow, asOf: Instant): SessionRow => ({
  ...row,
  ...rule.becomes,
  endedAt: asOf,
  updatedAt: asOf,
  durationSeconds:
    rule.becomes.status === "Ended" && typeof row.startedAt === "bigint"
      ? Number((asOf - row.startedAt) / 1_000_000n)
      : null
})

export const sameRow = (a: SessionRow | undefined, b: SessionRow | undefined): boolean =>
  a === b ||
  (a !== undefined &&
    b !== undefined &&
    (Object.keys({ ...a, ...b }) as Array<keyof SessionRow>).every((key) => a[key] === b[key]))
