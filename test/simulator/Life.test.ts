import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Result, Schema } from "effect"
import * as Life from "../../src/simulator/Life.ts"
import * as Pace from "../../src/simulator/Pace.ts"
import { follow } from "./lifeModel.ts"

const usual: Pace.Timing = {
  emptyRoomGrace: Duration.seconds(90),
  provisionTimeout: Duration.minutes(2),
  staleLiveTimeout: Duration.hours(4),
  heartbeatInterval: Duration.seconds(15)
}

const paceOf = (timing: Pace.Timing, scale: number) => Effect.fromResult(Pace.make(timing, scale))

const lives = (seed: number, count: number) =>
  Effect.flatMap(paceOf(usual, 1), (pace) =>
    Effect.forEach(
      Array.from({ length: count }, (_, number) => number),
      (number) => Life.generate(seed, number, pace)
    )
  )

describe("a life", () => {
  it.effect("is the same for the same seed, number and pace, whatever was told before it", () =>
    Effect.gen(function* () {
      const pace = yield* paceOf(usual, 1)
      const [, , third] = yield* lives(7, 3)
      expect(yield* Life.generate(7, 2, pace)).toEqual(third)
      expect(yield* Life.generate(8, 2, pace)).not.toEqual(third)
    })
  )

  it.effect("comes in every kind, about as often as its share says", () =>
    Effect.gen(function* () {
      const told = yield* lives(1, 2000)
      for (const [kind, share] of Object.entries(Life.shares)) {
        const percent = (told.filter((life) => life.kind === kind).length / told.length) * 100
        expect(Math.abs(percent - share), kind).toBeLessThan(3)
      }
    })
  )

  it.effect("ends in every way and leaves recordings in every state, also several and none", () =>
    Effect.gen(function* () {
      const told = yield* lives(2, 1000)
      expect(new Set(told.map((life) => life.expected.outcome))).toEqual(
        new Set(["ended-by-messenger", "EmptyTimeout", "Error", "Timeout"])
      )
      const recordings = told.map((life) => [...follow(life).recordings.values()])
      expect(new Set(recordings.flat())).toEqual(new Set(["Pending", "Recording", "Uploading", "Available", "Failed"]))
      expect(new Set(recordings.map((states) => states.length))).toEqual(new Set([0, 1, 2, 3]))
    })
  )

  it.effect("is rejoined once and several times, and only where its kind says so", () =>
    Effect.gen(function* () {
      const told = yield* lives(3, 1000)
      const fillings = (kind: Life.Kind) =>
        new Set(told.filter((life) => life.kind === kind).map((life) => follow(life).fillings))
      expect(fillings("rejoined")).toEqual(new Set([2, 3, 4]))
      expect(fillings("normal")).toEqual(new Set([1]))
      expect(fillings("abandoned-empty")).toEqual(new Set([0, 1]))
      expect(fillings("never-admitted")).toEqual(new Set([0]))
    })
  )

  it.effect("is admitted shortly before the provision timeout where its kind says so", () =>
    Effect.gen(function* () {
      const late = (yield* lives(4, 500)).filter((life) => life.kind === "late-admitted")
      for (const life of late) {
        const admitted = follow(life).admittedAt ?? 0
        expect(admitted).toBeGreaterThanOrEqual(110_000)
        expect(admitted).toBeLessThanOrEqual(115_000)
      }
    })
  )

  it.effect(
    "starts its recordings while somebody is inside, also where the last one leaves at the same millisecond",
    () =>
      Effect.gen(function* () {
        // Meetings of a few milliseconds, so that their steps meet.
        const dense = yield* paceOf({ ...usual, heartbeatInterval: Duration.minutes(2) }, 2400)
        const told = yield* Effect.forEach(
          Array.from({ length: 5000 }, (_, number) => number),
          (number) => Life.generate(5, number, dense)
        )
        const together = told.filter(({ steps }) =>
          steps.some(
            ({ at, command }) =>
              command._tag === "StartRecording" && steps.some((step) => step.at === at && step.command._tag === "Leave")
          )
        )
        expect(together.length).toBeGreaterThan(100)
        expect(told.flatMap((life) => follow(life).faults)).toEqual([])
      })
  )

  const seconds = (minimum: number, maximum: number) => Schema.Finite.check(Schema.isBetween({ minimum, maximum }))
  const number = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }))

  it.effect.prop(
    "keeps to the windows by their margins and ends as expected (R1, R2, R3)",
    [number, number, seconds(1, 200), seconds(1, 300), seconds(2, 20_000), seconds(1, 120)],
    ([seed, room, grace, provision, stale, scale]) =>
      Effect.gen(function* () {
        const timing = {
          emptyRoomGrace: Duration.seconds(grace),
          provisionTimeout: Duration.seconds(provision),
          staleLiveTimeout: Duration.seconds(grace + stale),
          heartbeatInterval: Duration.seconds(15)
        }
        const made = Pace.make(timing, scale)
        if (Result.isFailure(made)) return
        const pace = made.success
        const life = yield* Life.generate(seed, room, pace)
        const course = follow(life)
        expect(course.faults).toEqual([])
        expect(life.steps.map((step) => step.at)).toEqual(life.steps.map((step) => step.at).sort((a, b) => a - b))
        expect(course.admittedAt ?? 0).toBeLessThanOrEqual(pace.provisionLimit + 1)
        expect(course.longestEmpty).toBeLessThanOrEqual(pace.graceLimit + 1)
        expect(course.longestQuiet).toBeLessThanOrEqual(pace.stale - pace.margin)
        expect(life.expected).toEqual(expected(course, pace))
      }),
    { arbitrary: { runs: 300 } }
  )
})

const expected = (course: ReturnType<typeof follow>, pace: Pace.Pace): Life.Expected => {
  if (course.endedAt !== undefined) return { outcome: "ended-by-messenger", dueAt: course.endedAt }
  if (course.status === "Provisioning") return { outcome: "Error", dueAt: pace.provision }
  return course.present.size === 0
    ? { outcome: "EmptyTimeout", dueAt: course.lastActivity + pace.grace }
    : { outcome: "Timeout", dueAt: course.lastActivity + pace.stale }
}
