/**
 * A moment as whole microseconds since the Unix epoch.
 *
 * PostgreSQL keeps microseconds and a JavaScript Date keeps milliseconds, so a comparison that passes through a Date
 * can close a room early or match no row at all. Everything that decides compares these integers.
 */
import { Duration, Effect, Option, Schema, SchemaIssue, SchemaTransformation } from "effect"

export const Instant = Schema.BigInt.pipe(Schema.brand("Instant"))
export type Instant = typeof Instant.Type

const make = (micros: bigint): Instant => micros as Instant

/** From milliseconds since the epoch, as `Clock` gives them. */
export const fromMillis = (millis: number): Instant => make(BigInt(Math.trunc(millis)) * 1000n)

/** Milliseconds since the epoch, rounded down. For spans and display, never for a decision. */
export const toMillis = (self: Instant): number => Number(floorDiv(self, 1000n))

const iso = /^(\d{4,6})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(Z|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)$/

const offsetSeconds = (zone: string): bigint => {
  if (zone === "Z") return 0n
  const [hours = "0", minutes = "0", seconds = "0"] = zone.slice(1).match(/\d\d/g) ?? []
  const total = BigInt(hours) * 3600n + BigInt(minutes) * 60n + BigInt(seconds)
  return zone.startsWith("-") ? -total : total
}

/** Reads ISO 8601 with an offset and up to six fraction digits; `infinity` and years before Christ are none. */
export const parse = (text: string): Option.Option<Instant> => {
  const match = iso.exec(text)
  if (match === null) return Option.none()
  const [, year, month, day, hour, minute, second, fraction = "", zone = "Z"] = match
  const expandedYear = year !== undefined && year.length > 4 ? `+${year.padStart(6, "0")}` : year
  const wholeSeconds = Date.parse(`${expandedYear}-${month}-${day}T${hour}:${minute}:${second}Z`)
  if (Number.isNaN(wholeSeconds)) return Option.none()
  const fractionMicros = BigInt(fraction.padEnd(6, "0"))
  return Option.some(make(BigInt(wholeSeconds) * 1000n - offsetSeconds(zone) * 1_000_000n + fractionMicros))
}

/** ISO 8601 in UTC: three fraction digits, six where the moment has microseconds. */
export const format = (self: Instant): string => {
  const micros = self - floorDiv(self, 1000n) * 1000n
  const text = new Date(toMillis(self)).toISOString()
  return micros === 0n ? text : `${text.slice(0, -1)}${micros.toString().padStart(3, "0")}Z`
}

/** Floor division: bigint division rounds towards zero, wrong before 1970. */
const floorDiv = (a: bigint, b: bigint): bigint => (a % b < 0n ? a / b - 1n : a / b)

const micros = (duration: Duration.Duration): bigint => BigInt(Math.round(Duration.toMillis(duration) * 1000))

export const plus = (self: Instant, duration: Duration.Duration): Instant => make(self + micros(duration))

export const minus = (self: Instant, duration: Duration.Duration): Instant => make(self - micros(duration))

/** Whole seconds from `start` to `end`, rounded down. */
export const wholeSecondsBetween = (start: Instant, end: Instant): number => Number(floorDiv(end - start, 1_000_000n))

/** Seconds from `start` to `end` with their fraction, for metrics. */
export const secondsBetween = (start: Instant, end: Instant): number => Number(end - start) / 1_000_000

/** The wire form: an ISO 8601 string on one side, an Instant on the other. */
export const InstantFromIso = Schema.String.pipe(
  Schema.decodeTo(
    Instant,
    SchemaTransformation.transformEffect({
      decode: (text, options) =>
        Effect.fromOption(parse(text)).pipe(
          Effect.mapError(() => new SchemaIssue.InvalidValue({ expected: "a finite ISO 8601 instant" }, text, options))
        ),
      encode: (instant: bigint) => Effect.succeed(format(make(instant)))
    })
  )
)
