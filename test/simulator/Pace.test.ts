import { describe, expect, it } from "@effect/vitest"
import { Duration, Result } from "effect"
import * as Pace from "../../src/simulator/Pace.ts"

const timing: Pace.Timing = {
  emptyRoomGrace: Duration.seconds(90),
  provisionTimeout: Duration.minutes(2),
  staleLiveTimeout: Duration.hours(4),
  heartbeatInterval: Duration.seconds(15)
}

const problems = (changed: Partial<Pace.Timing>, scale = 1): ReadonlyArray<string> =>
  Result.match(Pace.make({ ...timing, ...changed }, scale), {
    onFailure: (refused) => refused.problems,
    onSuccess: () => []
  })

describe("the pace", () => {
  it("takes a quarter of the window as margin, at least 500 ms and at most 5 s", () => {
    expect([1000, 4000, 12_000, 90_000].map(Pace.margin)).toEqual([500, 1000, 3000, 5000])
  })

  it("divides the heartbeat by the scale and leaves the worker's windows alone", () => {
    const pace = Result.getOrThrow(Pace.make(timing, 10))
    expect(pace).toMatchObject({ grace: 90_000, provision: 120_000, stale: 14_400_000, heartbeat: 1500, margin: 5000 })
  })

  it("refuses windows that are too short for their margin, naming each", () => {
    const found = problems({ emptyRoomGrace: Duration.millis(900), provisionTimeout: Duration.millis(999) })
    expect(found).toEqual([
      "EmptyRoomGrace of 900 ms is too short to act inside it safely: at least 1000 ms",
      "ProvisionTimeout of 999 ms is too short to act inside it safely: at least 1000 ms"
    ])
  })

  it("refuses a grace that is not shorter than the stale window", () => {
    expect(problems({ emptyRoomGrace: Duration.hours(4) })).toHaveLength(1)
  })

  it("refuses heartbeats that do not fit into the stale window three times, or come too often", () => {
    expect(problems({ heartbeatInterval: Duration.hours(2) })).toHaveLength(1)
    expect(problems({}, 1000)).toHaveLength(1)
  })

  it("refuses a scale that is not a number above 0", () => {
    expect([0, -1, Number.NaN, Number.POSITIVE_INFINITY].map((scale) => problems({}, scale).length)).toEqual([
      1, 1, 1, 1
    ])
  })
})
