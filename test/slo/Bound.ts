/**
 * The bound in closed form. With `due` the moment since which a room waits, or the worker's start where that is later:
 *
 *   EndedAt <= due + PollingInterval x (1 + misses) + overruns + lock wait
 *
 * misses: ticks with AsOf at or after `due` that could not close it: lock busy, phase failed, batch full of older rooms,
 * time run out, row locked by the messenger. overruns: by how much each cycle took longer than the interval, from the
 * last one before `due` to the last one missed. lock wait: the time until the closing tick's lock was granted. With none
 * of these it is S1 and S2.
 */
import type { SessionRow } from "../support/Sessions.ts"
import type { Violated } from "./Clause.ts"
import type { Plan } from "./Plan.ts"
import { dueAt, type Rule, rules } from "./Rules.ts"
import { type Miss, missOf, type Tick, violated } from "./Tick.ts"

/** The tick's own excess over the interval, in microseconds. */
const overrun = (tick: Tick, interval: bigint): bigint => {
  const excess = tick.end - tick.start - interval
  return excess > 0n ? excess : 0n
}

export interface Waited {
  readonly misses: ReadonlyArray<Miss>
  readonly overrun: boolean
}

/** `earlier` are the ticks before the closing one, in order. */
export const check = (
  plan: Plan,
  rule: Rule,
  room: SessionRow,
  earlier: ReadonlyArray<Tick>,
  closing: Tick
): Waited | Violated => {
  const { settings } = plan
  const startsAt = BigInt(plan.startsAt) * 1000n
  const since = dueAt(rule, settings, room)
  const due = since < startsAt ? startsAt : since
  const missed = earlier.filter((tick) => tick.asOf >= due)
  const last = earlier.slice(Math.max(0, earlier.length - missed.length - 1))
  const interval = BigInt(settings.interval) * 1000n
  const overruns = last.reduce((sum, tick) => sum + overrun(tick, interval), 0n)
  const misses: Array<Miss> = []
  for (const tick of missed) {
    const miss = missOf(tick, rules.indexOf(rule), room.id, settings)
    if (miss === undefined)
      return violated("bound", `nothing excuses the tick of ${tick.start} from closing ${room.id}`)
    misses.push(miss)
  }
  const latest = due + interval * BigInt(1 + misses.length) + overruns + (closing.asOf - closing.start)
  if (closing.asOf > latest)
    return violated("bound", `${room.id}, due at ${due}, closed at ${closing.asOf}, not by ${latest}`)
  return { misses, overrun: overruns > 0n }
}
