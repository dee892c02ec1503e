import { expect, it } from "@effect/vitest"
import { Duration, Result, Schema } from "effect"
import { describe } from "vitest"
import * as DurationText from "../../src/domain/DurationText.ts"

const millis = (text: string) => Result.map(DurationText.parse(text), Duration.toMillis)

describe("DurationText", () => {
  it.each([
    ["90s", 90_000],
    ["2m", 120_000],
    ["4h", 14_400_000],
    ["3d", 259_200_000],
    ["500ms", 500],
    ["0s", 0],
    ["1h30m", 5_400_000],
    ["1h 30m", 5_400_000],
    ["1d2h3m4s5ms", 93_784_005],
    ["90 seconds", 90_000],
    ["1 second", 1000],
    ["2 minutes", 120_000],
    ["1 minute 30 seconds", 90_000],
    ["1.5 hours", 5_400_000],
    ["1.1h", 3_960_000],
    ["500 millis", 500],
    ["5 days", 432_000_000],
    ["PT90S", 90_000],
    ["PT1.5S", 1500],
    ["P1DT2H", 93_600_000],
    ["PT0S", 0],
    ["00:01:30", 90_000],
    ["23:59:59", 86_399_000],
    ["1.02:00:00", 93_600_000],
    ["00:00:00.5", 500],
    ["00:00:01.2500000", 1250]
  ])("reads %s (O)", (text, expected) => {
    expect(millis(text)).toEqual(Result.succeed(expected))
  })

  it.each([
    ["30", "is a bare number and has no unit"],
    ["1.5", "is a bare number and has no unit"],
    ["-30", "is a bare number and has no unit"],
    ["-5s", "is negative"],
    ["-5 seconds", "is negative"],
    ["-PT5S", "is negative"],
    ["-00:00:30", "is negative"],
    ["Infinity", "is not finite"],
    ["-Infinity", "is negative"],
    ["NaN", "is not a duration"],
    ["", "is empty"],
    [" ", "is not a duration"],
    ["abc", "is not a duration"],
    ["1m30", "is not a duration"],
    ["30m1h", "is not a duration"],
    ["1h1h", "is not a duration"],
    ["5mss", "is not a duration"],
    ["90S", "is not a duration"],
    ["5 parsecs", "is not a duration"],
    ["1e3s", "is not a duration"],
    ["٣s", "is not a duration"],
    ["P", "is not an ISO 8601 duration"],
    ["P1M", "is not an ISO 8601 duration"],
    ["P1Y", "is not an ISO 8601 duration"],
    ["PT", "is not an ISO 8601 duration"],
    ["12:30", "is not a duration"],
    ["00:60:00", "is not a duration"],
    ["24:00:00", "has more than 23 hours; write whole days before a dot, as in 1.00:00:00"]
  ])("refuses '%s': it %s (O)", (text, problem) => {
    expect(DurationText.parse(text)).toEqual(Result.fail(problem))
  })

  it("keeps parts of a millisecond exact", () => {
    expect(Result.map(DurationText.parse("PT0.0000005S"), Duration.toNanosUnsafe)).toEqual(Result.succeed(500n))
    expect(Result.map(DurationText.parse("0.5ms"), Duration.toNanosUnsafe)).toEqual(Result.succeed(500_000n))
  })

  it.each([
    [Duration.zero, "0s"],
    [Duration.millis(500), "500ms"],
    [Duration.seconds(30), "30s"],
    [Duration.seconds(60), "1m"],
    [Duration.seconds(90), "90s"],
    [Duration.seconds(150), "2m30s"],
    [Duration.minutes(2), "2m"],
    [Duration.hours(4), "4h"],
    [Duration.minutes(90), "1h30m"],
    [Duration.days(7), "7d"]
  ])("prints the short form: %s is %s", (duration, text) => {
    expect(DurationText.format(duration)).toBe(text)
  })

  const tenYears = Duration.toMillis(Duration.days(3650))

  it.prop(
    "reads back every form that it or ISO 8601 prints",
    [Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: tenYears }))],
    ([value]) => {
      const duration = Duration.millis(value)
      const iso = Duration.formatIso(duration)
      return (
        Result.getOrThrow(millis(DurationText.format(duration))) === value &&
        iso._tag === "Some" &&
        Result.getOrThrow(millis(iso.value)) === value
      )
    },
    { arbitrary: { runs: 500, size: 1_000_000 } }
  )
})
