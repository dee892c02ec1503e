/**
 * Stands at every operation of the in-memory database: makes the tick's planned trouble happen there, and records what
 * the database was asked to do and when. A lock that is busy is really held, by a rival in a scope of its own.
 */
import { Effect, Exit, Metric, Scope } from "effect"
import * as Metrics from "../../src/program/Metrics.ts"
import type { RunLock } from "../../src/services/RunLock.ts"
import type { StoreUnavailable } from "../../src/services/StoreError.ts"
import { type Operation, operations, unavailable } from "../fakes/Faults.ts"
import type { Database } from "../fakes/MemoryDatabase.ts"
import type { SessionRow } from "../support/Sessions.ts"
import { now } from "./Messenger.ts"
import { type Fault, noFault, type Plan } from "./Plan.ts"
import type { Entry } from "./Story.ts"

const oncePerTick = new Set<Operation>(["lock", "backlog", "recordRun", "prune"])

export interface Trouble {
  /** A tick begins. */
  readonly beat: Effect.Effect<void>
  readonly ticks: () => number
  /** Records and keeps in mind what the messenger wrote. */
  readonly record: (entry: Entry) => void
  /** Records a batch that is committed and not answered yet: who waited for its locks goes on before the worker does. */
  readonly noteCommit: Effect.Effect<void>
}

export const start = (
  plan: Plan,
  database: Database,
  runLock: RunLock["Service"],
  entries: Array<Entry>
): Effect.Effect<Trouble> => {
  const seen = new Map<string, SessionRow>()
  let ticks = 0
  let phase = -1
  let fault: Fault = noFault
  let struck = false
  let isNoted = true
  let rival: Scope.Closeable | undefined
  let rivalActs = false

  const record = (entry: Entry) => {
    if (entry._tag === "Unlocked" && entry.after !== undefined) seen.set(entry.room, entry.after)
    entries.push(entry)
  }
  const mark = (_tag: "Operation" | "Injured" | "Delayed" | "CutOff", operation: Operation) =>
    Effect.map(now, (at) => record({ _tag, operation, phase, at }))

  const noteFixed = Effect.fnUntraced(function* (isAnswered: boolean) {
    const changed = (yield* database.committed("sessions")).filter((row) => seen.get(row.id) !== row)
    if (isNoted || (changed.length === 0 && !isAnswered)) return
    isNoted = true
    for (const row of changed) seen.set(row.id, row)
    record({ _tag: "Fixed", phase, at: yield* now, changed })
  })
  const noteGauge = Effect.gen(function* () {
    const { value } = yield* Metric.value(Metrics.activeBacklog)
    record({ _tag: "Gauge", at: yield* now, shown: value })
  })
  const letRivalIn = Effect.gen(function* () {
    rivalActs = true
    rival = yield* Scope.make()
    yield* Effect.ignore(Scope.provide(runLock.tryAcquire, rival))
    rivalActs = false
  })

  const strike = (operation: Operation): Effect.Effect<void, StoreUnavailable> => {
    const isHere = fault.operation === operation && (oncePerTick.has(operation) || fault.phase === phase)
    if (fault.kind === "busy") return operation === "lock" ? letRivalIn : Effect.void
    if (fault.kind === "outage" && struck) return Effect.fail(unavailable(operation))
    if (!isHere || struck || fault.kind === "none") return Effect.void
    struck = true
    if (fault.kind === "delay") {
      const pause = Effect.onInterrupt(Effect.sleep(fault.delay), () => mark("CutOff", operation))
      return Effect.andThen(mark("Delayed", operation), pause)
    }
    const injury = fault.kind === "die" ? Effect.die(new Error(operation)) : Effect.fail(unavailable(operation))
    return Effect.andThen(mark("Injured", operation), injury)
  }

  const stand = (operation: Operation) =>
    Effect.gen(function* () {
      if (rivalActs) return
      if (operation === "confirm") phase += 1
      if (operation === "begin") isNoted = false
      if (operation === "commitAnswer") yield* noteFixed(true)
      if (operation === "recordRun") yield* noteGauge
      yield* strike(operation)
      yield* mark("Operation", operation)
    })

  const beat = Effect.gen(function* () {
    if (rival !== undefined) yield* Scope.close(rival, Exit.void)
    rival = undefined
    fault = plan.faults[ticks] ?? noFault
    ticks += 1
    phase = -1
    struck = false
    record({ _tag: "Tick", at: yield* now })
  })

  return Effect.as(
    Effect.forEach(operations, (operation) => database.faults.before(operation, stand(operation), Infinity), {
      discard: true
    }),
    { beat, ticks: () => ticks, record, noteCommit: noteFixed(false) }
  )
}
