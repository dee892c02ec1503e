/**
 * Durations as people write them in configuration (O): `90s`, `1h30m`, `1.5 hours`, ISO 8601 (`PT90S`) and `hh:mm:ss`,
 * also `d.hh:mm:ss` as .NET writes it. Arithmetic is exact, in nanoseconds. Whatever could be read in two ways is
 * refused: a bare number, `24:00:00` (24 days to .NET), months and years.
 */
import { Duration, Option, Result } from "effect"

export const forms = "90s, 2m, 4h, 1h30m, 90 seconds, PT90S or hh:mm:ss"

const nanosPerMilli = 1_000_000n

const units: ReadonlyArray<{ readonly names: string; readonly nanos: bigint }> = [
  { names: "d|days?", nanos: 86_400_000_000_000n },
  { names: "h|hrs?|hours?", nanos: 3_600_000_000_000n },
  { names: "m|mins?|minutes?", nanos: 60_000_000_000n },
  { names: "s|secs?|seconds?", nanos: 1_000_000_000n },
  { names: "ms|millis?|milliseconds?", nanos: nanosPerMilli }
]

// Each unit at most once and the larger one first, so that a slip such as "30m1h" is seen. A unit must not run on into
// more letters, else "5ms" would be five minutes and an "s".
const sequence = new RegExp(
  `^${units.map(({ names }) => `(?:(\\d{1,15})(?:\\.(\\d{1,9}))?\\s*(?:${names})(?![a-z])\\s*)?`).join("")}$`
)
const clock = /^(?:(\d{1,8})\.)?(\d{1,2}):([0-5]\d):([0-5]\d)(?:\.(\d{1,9}))?$/

const fromNanos = (nanos: bigint): Duration.Duration =>
  nanos % nanosPerMilli === 0n ? Duration.millis(Number(nanos / nanosPerMilli)) : Duration.nanos(nanos)

const amount = (whole: string | undefined, fraction: string | undefined, nanosPerUnit: bigint): bigint =>
  BigInt(whole ?? "0") * nanosPerUnit + (BigInt((fraction ?? "").padEnd(9, "0")) * nanosPerUnit) / 1_000_000_000n

const parseClock = (match: RegExpExecArray): Result.Result<Duration.Duration, string> => {
  const [, days, hours, minutes, seconds, fraction] = match
  if (Number(hours) > 23) return Result.fail("has more than 23 hours; write whole days before a dot, as in 1.00:00:00")
  return Result.succeed(
    fromNanos(
      amount(days, undefined, 86_400_000_000_000n) +
        amount(hours, undefined, 3_600_000_000_000n) +
        amount(minutes, undefined, 60_000_000_000n) +
        amount(seconds, fraction, 1_000_000_000n)
    )
  )
}

const refusal = (text: string): string => {
  if (text === "") return "is empty"
  if (/^[+-]?\d+(\.\d+)?$/.test(text)) return "is a bare number and has no unit"
  if (/^-/.test(text)) return "is negative"
  if (/^[+]?inf/i.test(text)) return "is not finite"
  return "is not a duration"
}

/** Reads a finite duration that is not negative; a failure says what is wrong, as the end of a sentence. */
export const parse = (text: string): Result.Result<Duration.Duration, string> => {
  const clockMatch = clock.exec(text)
  if (clockMatch !== null) return parseClock(clockMatch)
  if (/^P/.test(text)) {
    return Result.fromOption(Option.map(Duration.fromIso(text), fromIso), () => "is not an ISO 8601 duration")
  }
  const match = text === "" ? null : sequence.exec(text)
  if (match === null) return Result.fail(refusal(text))
  const nanos = units.reduce((sum, unit, i) => sum + amount(match[2 * i + 1], match[2 * i + 2], unit.nanos), 0n)
  return Result.succeed(fromNanos(nanos))
}

const fromIso = (duration: Duration.Duration): Duration.Duration => fromNanos(Duration.toNanosUnsafe(duration))

/** The short form for logs: "90s", "2m", "1h30m". `parse` reads it back, whole milliseconds given. */
export const format = (duration: Duration.Duration): string => {
  const millis = Duration.toMillis(duration)
  if (millis === 0) return "0s"
  // Between one and two minutes people say seconds: the specification's own 90s.
  if (millis > 60_000 && millis < 120_000 && millis % 1000 === 0) return `${millis / 1000}s`
  return Duration.format(duration).replaceAll(" ", "")
}
