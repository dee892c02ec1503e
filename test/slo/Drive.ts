/**
 * Plays a plan: the real loop in a fiber on the in-memory layers, the messenger's commands at their moments, time moved
 * by hand from moment to moment. It ends once all trouble is over and every room has had the time to be closed.
 */
import { Duration, Effect, Fiber, Layer, Logger, Metric, Scheduler, Semaphore } from "effect"
import { TestClock } from "effect/testing"
import * as Metrics from "../../src/program/Metrics.ts"
import * as RecorderSignals from "../../src/program/RecorderSignals.ts"
import { Liveness } from "../../src/services/Liveness.ts"
import { defaults, type Options, ReaperOptions } from "../../src/services/ReaperOptions.ts"
import { RunLock } from "../../src/services/RunLock.ts"
import { MemoryDatabase } from "../fakes/MemoryDatabase.ts"
import * as MemoryLayers from "../fakes/MemoryLayers.ts"
import { RunLockControl } from "../fakes/MemoryRunLock.ts"
import type { Build } from "./Build.ts"
import * as Messenger from "./Messenger.ts"
import type { Plan, Settings } from "./Plan.ts"
import type { Entry, Story } from "./Story.ts"
import { commands } from "./Timeline.ts"
import * as Trouble from "./Trouble.ts"

/** Longer than any cycle here: what a lost lock does is not this story's. */
const lockTtl = Duration.minutes(10)

const optionsOf = (settings: Settings): Options => ({
  ...defaults,
  pollingInterval: Duration.millis(settings.interval),
  emptyRoomGrace: Duration.millis(settings.grace),
  provisionTimeout: Duration.millis(settings.provision),
  staleLiveTimeout: Duration.millis(settings.stale),
  batchSize: settings.batchSize,
  maxRunDuration: Duration.millis(settings.maxRun),
  lockTtl,
  // Off, so that a build with a wrong clock is not saved by it.
  maxClockSkew: Duration.zero
})

const surroundings = Layer.mergeAll(
  Logger.layer([]),
  Layer.sync(Metric.MetricRegistry, () => new Map()),
  // No fiber is set aside between what it does and the record of it.
  Layer.succeed(Scheduler.MaxOpsBeforeYield, Number.MAX_SAFE_INTEGER)
)

const setTime = (micros: bigint) => TestClock.setTime(Number(micros) / 1000)

/** Interval by interval, until rooms, messenger and trouble have all come to their end. */
const playOut = Effect.fnUntraced(function* (
  plan: Plan,
  ticks: () => number,
  isIdle: () => boolean,
  allClosed: Effect.Effect<boolean>
) {
  const { interval, grace, provision, stale, batchSize } = plan.settings
  const rounds = Math.ceil((Math.max(grace, provision, stale) + interval) / interval)
  const turns = rounds + Math.ceil(plan.lives.length / batchSize)
  const startsAt = BigInt(plan.startsAt) * 1000n
  if ((yield* Messenger.now) < startsAt) yield* setTime(startsAt)
  // Time and not ticks bounds the wait: a broken build may have stopped ticking.
  const patience = plan.faults.reduce((sum, { delay }) => sum + delay + 2 * interval, 0) / interval
  for (let turn = 0; turn < patience && (ticks() <= plan.faults.length || !isIdle()); turn++) {
    yield* TestClock.adjust(interval)
  }
  for (let turn = 0; turn < turns && !(yield* allClosed); turn++) yield* TestClock.adjust(interval)
  yield* TestClock.adjust(interval)
})

const play = Effect.fnUntraced(function* (plan: Plan, build: Build, rival: RunLock["Service"]) {
  const database = yield* MemoryDatabase
  const entries: Array<Entry> = []
  yield* (yield* RunLockControl).setLockTtl(lockTtl)
  const trouble = yield* Trouble.start(plan, database, rival, entries)
  const liveness = Liveness.of({ beat: trouble.beat, check: Effect.succeed({ alive: true, silentFor: Duration.zero }) })
  const loop = Effect.delay(build.loop, plan.startsAt).pipe(Effect.provideService(Liveness, liveness))
  const worker = yield* Effect.forkChild(Effect.exit(loop), { startImmediately: true })

  let outstanding = 0
  // One room's commands follow one another, also when one of them has to wait for a row lock.
  const queues = plan.lives.map(() => Semaphore.makeUnsafe(1))
  for (const command of commands(plan)) {
    yield* setTime(command.at)
    const turn = queues[command.room - 1] ?? Semaphore.makeUnsafe(1)
    outstanding += 1
    yield* Messenger.perform(database, trouble, command).pipe(
      turn.withPermits(1),
      Effect.ensuring(Effect.sync(() => outstanding--)),
      Effect.forkChild({ startImmediately: true })
    )
  }
  const allClosed = Effect.map(database.committed("sessions"), (rows) => rows.every((row) => row.endedAt !== null))
  yield* playOut(plan, trouble.ticks, () => outstanding === 0, allClosed)
  const endedAt = yield* Messenger.now
  yield* Fiber.interrupt(worker)
  return {
    plan,
    entries,
    endedAt,
    sessions: yield* database.committed("sessions"),
    closings: yield* database.committed("closings"),
    announced: (yield* database.committed("outbox")).map((row) => row.conferenceId),
    pushed: (yield* database.committed("realtime")).map((row) => row.sessionId),
    refused: (yield* database.committed("poison")).map((row) => row.conferenceId)
  } satisfies Story
})

/** Plays the plan with the build given, on a clock and a database of its own. */
export const drive = (plan: Plan, build: Build): Effect.Effect<Story> => {
  const base = Layer.provideMerge(MemoryLayers.layer, Layer.succeed(ReaperOptions, optionsOf(plan.settings)))
  return Effect.gen(function* () {
    // The rival takes the lock itself, whatever a broken build has put before it.
    const rival = yield* RunLock
    return yield* play(plan, build, rival).pipe(
      Effect.provide(Layer.mergeAll(Metrics.layer, RecorderSignals.layer).pipe(Layer.provideMerge(build.ports)))
    )
  }).pipe(Effect.provide(base.pipe(Layer.provideMerge(surroundings), Layer.provideMerge(TestClock.layer()))))
}
