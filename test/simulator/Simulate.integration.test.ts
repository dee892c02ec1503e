import { describe, expect, layer } from "@effect/vitest"
import { Deferred, Duration, Effect, Layer, Option, References, Result } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as Instant from "../../src/domain/Instant.ts"
import { audit } from "../../src/simulator/Audit.ts"
import * as Life from "../../src/simulator/Life.ts"
import { systemNow } from "../../src/simulator/MessengerWrites.ts"
import * as Pace from "../../src/simulator/Pace.ts"
import * as Run from "../../src/simulator/Run.ts"
import { type SimulateOptions, simulate } from "../../src/simulator/Simulate.ts"
import { database, stored } from "./messenger.ts"
import { cycle } from "./rightWorker.ts"

const timing: Pace.Timing = {
  emptyRoomGrace: Duration.seconds(2),
  provisionTimeout: Duration.seconds(2),
  staleLiveTimeout: Duration.seconds(4),
  heartbeatInterval: Duration.minutes(1)
}

const options: SimulateOptions = {
  roomsPerSecond: 40,
  timing,
  timeScale: 1200,
  duration: Option.some(Duration.seconds(1)),
  drain: true,
  seed: 11,
  maxLiveRooms: 100,
  auditAllowance: Duration.zero,
  provisionFailedSignal: true,
  onEnd: () => Effect.void,
  brokenOff: Effect.never
}

const pace = Result.getOrThrow(Pace.make(timing, options.timeScale))

const quietDatabase = Layer.merge(database, Layer.succeed(References.MinimumLogLevel, "Error"))

describe("the simulator", () => {
  layer(quietDatabase, { excludeTestServices: true })("on a database", (it) => {
    it.effect(
      "leaves every room as its life says, so that a worker closes it as expected (R1, R2, R3)",
      () =>
        Effect.gen(function* () {
          const summary = yield* simulate(options)
          const run = Run.fromId(summary.runId)
          expect(summary.tally.started).toBeGreaterThan(10)
          expect(summary.tally.finished).toBe(summary.tally.started)
          expect(summary.rooms).toEqual({
            rooms: summary.tally.started,
            open: summary.tally.leftForWorker,
            endedByMessenger: summary.tally.endedByMessenger,
            closedByWorker: 0
          })
          // Nobody closed anything, so the drain ends when each of them is overdue.
          expect(summary.audit.breachCount).toBe(summary.tally.leftForWorker)
          expect(new Set(summary.audit.breaches.map((breach) => breach.split(": ")[0]))).toEqual(
            new Set(["due and not closed"])
          )
          const muchLater = Instant.plus(yield* systemNow, Duration.hours(1))
          yield* cycle(timing, muchLater)
          for (let number = 0; number < summary.tally.started; number++) {
            const life = yield* Life.generate(options.seed, number, pace)
            const room = yield* stored(run.conferenceId(number))
            const outcome = room?.endReason === "Completed" ? "ended-by-messenger" : room?.endReason
            expect(outcome, `${number} ${life.kind}`).toBe(life.expected.outcome)
          }
          const { breaches } = yield* audit({
            windows: timing,
            asOf: muchLater,
            allowance: Duration.zero,
            provisionFailedSignal: true
          })
          expect(breaches).toEqual([])
        }),
      40_000
    )

    it.effect(
      "plays the same seed twice side by side beside a right worker that closes what was left and nothing alive (R9)",
      () =>
        Effect.gen(function* () {
          const worker = Effect.flatMap(systemNow, (now) => cycle(timing, now)).pipe(
            Effect.delay("100 millis"),
            Effect.forever
          )
          const patient = { ...options, auditAllowance: Duration.seconds(60) }
          const both = Effect.all([simulate(patient), simulate(patient)], { concurrency: 2 })
          const [first, second] = yield* Effect.raceFirst(both, worker)
          expect(first.runId).not.toBe(second.runId)
          for (const { audit, deliveries, rooms, tally } of [first, second]) {
            expect(rooms).toMatchObject({ rooms: tally.started, open: 0, closedByWorker: tally.leftForWorker })
            expect(deliveries).toMatchObject({ failedAttempts: 0, lost: 0 })
            expect(tally.closedAlive).toEqual([])
            expect(audit.breaches).toEqual([])
          }
        }),
      60_000
    )

    it.effect(
      "goes on when the database drops its connections, and counts what it repeated",
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient
          const dropAll = sql`select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()`
          const drops = dropAll.pipe(Effect.delay("200 millis"), Effect.repeat({ times: 3 }))
          const [{ deliveries, rooms, tally }] = yield* Effect.all([simulate(options), drops], { concurrency: 2 })
          expect(deliveries.failedAttempts).toBeGreaterThan(0)
          expect(deliveries.lost).toBe(0)
          expect(tally.finished).toBe(tally.started)
          expect(rooms.rooms).toBe(tally.started)
          expect(tally.closedAlive).toEqual([])
        }),
      40_000
    )

    it.effect("starts no more rooms than may live at once", () =>
      Effect.gen(function* () {
        const { rooms, tally } = yield* simulate({ ...options, maxLiveRooms: 3, drain: false })
        expect(tally.started - tally.finished).toBeLessThanOrEqual(3)
        expect(rooms.rooms).toBeLessThanOrEqual(tally.started)
      })
    )

    it.effect("ends with its summary when it is interrupted, breaking lives off or draining them", () =>
      Effect.gen(function* () {
        for (const drain of [false, true]) {
          const ended = yield* Deferred.make<{ readonly live: number }>()
          const endless = simulate({
            ...options,
            duration: Option.none(),
            drain,
            onEnd: ({ tally }) => Effect.asVoid(Deferred.succeed(ended, { live: tally.started - tally.finished }))
          })
          expect(yield* Effect.timeoutOption(endless, "500 millis")).toEqual(Option.none())
          const { live } = yield* Deferred.await(ended)
          if (drain) expect(live).toBe(0)
          else expect(live).toBeGreaterThan(0)
        }
      })
    )

    it.effect("refuses windows that are too short, before it writes anything", () =>
      Effect.gen(function* () {
        const short = { ...timing, emptyRoomGrace: Duration.millis(300) }
        const refused = yield* Effect.flip(simulate({ ...options, timing: short }))
        expect(refused.message).toBe("EmptyRoomGrace of 300 ms is too short to act inside it safely: at least 1000 ms")
      })
    )
  })
})
