/** One tick as the record tells it, and what excuses a phase of it from having closed what was due. */
import type { Instant } from "../../src/domain/Instant.ts"
import type { SessionRow } from "../support/Sessions.ts"
import { type Clause, Violated } from "./Clause.ts"
import { type Fault, noFault, type Settings } from "./Plan.ts"
import { plusMillis, rules } from "./Rules.ts"

/** Why a tick closed nothing of a room that was due by then. */
export type Miss = "busy" | "failed" | "overrun" | "full" | "locked"

export interface PhaseRun {
  /** What the claim has to take: due, not locked, oldest first, at most BatchSize. Undefined until the claim. */
  claimed: ReadonlyArray<SessionRow> | undefined
  /** Due and not locked, but younger than a full batch. */
  leftByFull: ReadonlySet<string>
  /** Under the messenger's locks at the claim. */
  locked: ReadonlySet<string>
  fixed: boolean
}

export interface Tick {
  readonly start: Instant
  readonly fault: Fault
  readonly phases: Array<PhaseRun>
  /** The moment that the lock was answered, in the clock's milliseconds (L2). */
  asOf: Instant
  /** The last moment at which anything was going on. */
  end: Instant
  injured: { readonly operation: string; readonly phase: number } | undefined
  backlogCounted: boolean
  /** Something has begun and is not over. */
  isWaiting: boolean
}

export const begin = (start: Instant, fault: Fault | undefined): Tick => ({
  start,
  fault: fault ?? noFault,
  phases: [],
  asOf: start,
  end: start,
  injured: undefined,
  backlogCounted: true,
  isWaiting: false
})

export const newPhase = (): PhaseRun => ({
  claimed: undefined,
  leftByFull: new Set(),
  locked: new Set(),
  fixed: false
})

export const violated = (clause: Clause, detail: string): Violated => new Violated({ clause, detail })

/** L1, to the microsecond. */
export const nextStart = (tick: Tick, settings: Settings): Instant => {
  const planned = plusMillis(tick.start, settings.interval)
  if (tick.end > planned) return tick.end
  return planned
}

const ranOut = (tick: Tick, settings: Settings): boolean => tick.end >= plusMillis(tick.start, settings.maxRun)

/** Whether a phase may have fixed nothing at all. */
const excuse = (tick: Tick, index: number, settings: Settings): Miss | undefined => {
  if (tick.fault.kind === "busy") return "busy"
  const { injured } = tick
  if (injured !== undefined) {
    const endsCycle = injured.operation === "lock" || injured.operation === "confirm" || tick.fault.kind === "outage"
    if (injured.phase === index || (endsCycle && injured.phase < index)) return "failed"
  }
  return ranOut(tick, settings) ? "overrun" : undefined
}

/** T6, L4: asked once the tick is over. */
export const checkTurns = (tick: Tick, settings: Settings): Violated | undefined => {
  for (const [index, rule] of rules.entries()) {
    if (tick.phases[index]?.fixed !== true && excuse(tick, index, settings) === undefined) {
      return violated("every-phase-has-its-turn", `${rule.name} did not commit in the tick of ${tick.start}`)
    }
  }
  return undefined
}

/** Why this tick, over by now, did not close the room in this phase; undefined when nothing excuses it. */
export const missOf = (tick: Tick, index: number, room: string, settings: Settings): Miss | undefined => {
  const phase = tick.phases[index]
  if (phase?.fixed !== true) return excuse(tick, index, settings)
  if (phase.locked.has(room)) return "locked"
  return phase.leftByFull.has(room) ? "full" : undefined
}

/** S3: a tick that closed all that was due. */
export const isClean = (tick: Tick): boolean =>
  tick.phases.length === rules.length &&
  tick.phases.every((phase) => phase.fixed && phase.leftByFull.size === 0 && phase.locked.size === 0)
