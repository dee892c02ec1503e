/**
 * Traffic as a messenger makes it: rooms begin at a given rate and live in real time, each as its Life says. The worker
 * runs elsewhere on the same database. At the end everything is counted and the database is audited.
 */
import { Clock, Duration, Effect, FiberSet, Option, Random, Ref, Semaphore } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Audit from "./Audit.ts"
import { between } from "./Draw.ts"
import * as Life from "./Life.ts"
import * as MessengerWrites from "./MessengerWrites.ts"
import * as Pace from "./Pace.ts"
import * as PatientClient from "./PatientClient.ts"
import { play } from "./Player.ts"
import * as Progress from "./Progress.ts"
import * as Run from "./Run.ts"
import { inStages } from "./Stages.ts"
import { awaitWorker } from "./WorkersTurn.ts"

export interface SimulateOptions {
  readonly roomsPerSecond: number
  /** The windows that the worker runs with, and the messenger's heartbeat interval. */
  readonly timing: Pace.Timing
  /** Divides the messenger's own times (talk, delays, heartbeats, row lock holds), never the worker's windows. */
  readonly timeScale: number
  /** How long rooms are started; none: until interrupted. */
  readonly duration: Option.Option<Duration.Duration>
  /** Whether lives that have begun are played to their end and the worker gets its turn, also after an interruption. */
  readonly drain: boolean
  readonly seed: number
  /** With this many lives under way the next room waits for one to end. */
  readonly maxLiveRooms: number
  /** See `Audit.Options`. */
  readonly auditAllowance: Duration.Duration
  readonly provisionFailedSignal: boolean
  /** Given the summary at the end, also when the run was interrupted and nobody is there to take the result. */
  readonly onEnd: (summary: Summary) => Effect.Effect<void>
  /** Waited for from the first interruption on: when it completes, the run breaks off without a summary. */
  readonly brokenOff: Effect.Effect<void>
}

export interface Summary {
  readonly runId: string
  readonly seed: number
  readonly tally: Progress.Tally
  readonly deliveries: PatientClient.Deliveries
  /** The run's own rooms in the database. */
  readonly rooms: Progress.Rooms
  /** Of the whole database. */
  readonly audit: Audit.Report
}

const progressInterval = Duration.seconds(5)
const longestHold = 50

interface Traffic {
  readonly options: SimulateOptions
  readonly pace: Pace.Pace
  readonly run: Run.Run
  readonly client: PatientClient.PatientClient
  readonly tally: Ref.Ref<Progress.Tally>
}

/** Holds are drawn from the life's own seed as well: up to 50 ms, divided by the scale. */
const holds = (seed: number, number: number, scale: number): Effect.Effect<Effect.Effect<void>> =>
  Random.Random.pipe(
    Effect.map((source) => Effect.suspend(() => Effect.sleep(between(source, 0, longestHold) / scale))),
    Random.withSeed(`${seed}:${number}:hold`)
  )

const live = ({ options, pace, run, client, tally }: Traffic, number: number): Effect.Effect<void, never, SqlClient> =>
  Effect.gen(function* () {
    const life = yield* Life.generate(options.seed, number, pace)
    yield* Ref.update(tally, (counts) => Progress.begun(counts, life.kind))
    const hold = yield* holds(options.seed, number, options.timeScale)
    const writes = yield* MessengerWrites.make({ now: MessengerWrites.systemNow, hold })
    const played = yield* play(run, life, writes, client, pace.margin)
    yield* Ref.update(tally, (counts) => Progress.over(counts, run, life, played))
  }).pipe(
    // A forked fiber that dies does so in silence.
    Effect.catchCause((cause) => Effect.logError("a life broke off", cause)),
    Effect.annotateLogs({ conferenceId: run.conferenceId(number) })
  )

const startRooms = (traffic: Traffic, lives: FiberSet.FiberSet): Effect.Effect<void, never, SqlClient> =>
  Effect.gen(function* () {
    const places = yield* Semaphore.make(traffic.options.maxLiveRooms)
    const distance = 1000 / traffic.options.roomsPerSecond
    let next = yield* Clock.currentTimeMillis
    for (let number = 0; ; number++) {
      yield* places.take(1)
      const now = yield* Clock.currentTimeMillis
      yield* Effect.sleep(Math.max(0, next - now))
      yield* FiberSet.run(lives, Effect.ensuring(live(traffic, number), places.release(1)))
      // Rooms that had to wait for a place are not made up in a burst.
      next = Math.max(now, next) + distance
    }
  })

const logProgress = ({ client, run, tally }: Traffic) =>
  Effect.gen(function* () {
    const counts = yield* Ref.get(tally)
    const { failedAttempts } = yield* client.deliveries
    const rooms = yield* Effect.option(Progress.readRooms(run))
    yield* Effect.logInfo("traffic").pipe(
      Effect.annotateLogs({
        started: counts.started,
        live: counts.started - counts.finished,
        endedByMessenger: counts.endedByMessenger,
        leftForWorker: counts.leftForWorker,
        closedByWorker: Option.match(rooms, { onNone: () => "unknown", onSome: (known) => known.closedByWorker }),
        failedAttempts,
        closedAlive: counts.closedAlive.length
      })
    )
  })

const summarise = ({ client, options, run, tally }: Traffic): Effect.Effect<Summary, SqlError, SqlClient> =>
  Effect.gen(function* () {
    const rooms = yield* Progress.readRooms(run)
    const audit = yield* Audit.audit({
      windows: options.timing,
      asOf: yield* MessengerWrites.systemNow,
      allowance: options.auditAllowance,
      provisionFailedSignal: options.provisionFailedSignal
    })
    return {
      runId: run.id,
      seed: options.seed,
      tally: yield* Ref.get(tally),
      deliveries: yield* client.deliveries,
      rooms,
      audit
    }
  })

const makeTraffic = (traffic: Traffic, lives: FiberSet.FiberSet): Effect.Effect<void, never, SqlClient> =>
  Option.match(traffic.options.duration, {
    onNone: () => startRooms(traffic, lives),
    onSome: (duration) => Effect.asVoid(Effect.timeoutOption(startRooms(traffic, lives), duration))
  })

const drain = ({ options, run }: Traffic, lives: FiberSet.FiberSet): Effect.Effect<void, SqlError, SqlClient> =>
  Effect.logInfo("no more rooms begin, the lives under way are played to their end").pipe(
    Effect.andThen(FiberSet.awaitEmpty(lives)),
    Effect.andThen(awaitWorker(run, options.timing, options.auditAllowance))
  )

/**
 * Makes traffic for `duration`, or until interrupted; then, with `drain`, waits for the lives under way and for the
 * worker, else breaks the lives off where they are. An interruption ends the traffic or the waiting, not the run;
 * only during the summary does it break the run off.
 */
export const simulate = (options: SimulateOptions): Effect.Effect<Summary, Pace.TimingRefused | SqlError, SqlClient> =>
  Effect.gen(function* () {
    const pace = yield* Effect.fromResult(Pace.make(options.timing, options.timeScale))
    const run = yield* Run.fresh
    const traffic: Traffic = {
      options,
      pace,
      run,
      client: yield* PatientClient.make,
      tally: yield* Ref.make(Progress.nothingYet)
    }
    yield* Effect.logInfo("traffic begins").pipe(Effect.annotateLogs({ runId: run.id, seed: options.seed }))
    return yield* inStages(options.brokenOff, ({ stage, last }) =>
      Effect.gen(function* () {
        const lives = yield* FiberSet.make()
        yield* logProgress(traffic).pipe(Effect.delay(progressInterval), Effect.forever, Effect.forkScoped)
        yield* stage(makeTraffic(traffic, lives))
        if (options.drain) yield* stage(drain(traffic, lives))
        yield* FiberSet.clear(lives)
        return yield* last(Effect.tap(summarise(traffic), options.onEnd))
      })
    )
  }).pipe(Effect.scoped)
