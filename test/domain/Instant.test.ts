import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Option, Result, Schema } from "effect"
import * as Instant from "../../src/domain/Instant.ts"

const micros = (text: string) => Option.map(Instant.parse(text), (instant): bigint => instant)
const instant = (micros: bigint) => Instant.Instant.make(micros)

describe("Instant", () => {
  it("keeps the microseconds of an ISO 8601 text", () => {
    assert.deepStrictEqual(micros("1970-01-01T00:00:01.000001Z"), Option.some(1_000_001n))
    assert.deepStrictEqual(micros("1970-01-01T00:00:00.5Z"), Option.some(500_000n))
    assert.deepStrictEqual(micros("1970-01-01T00:00:00Z"), Option.some(0n))
  })

  it("reads every form of offset that PostgreSQL writes", () => {
    const noon = micros("2026-03-01T12:00:00Z")
    assert.isTrue(Option.isSome(noon))
    assert.deepStrictEqual(micros("2026-03-01 14:00:00+02"), noon)
    assert.deepStrictEqual(micros("2026-03-01T17:30:00+05:30"), noon)
    assert.deepStrictEqual(micros("2026-03-01T07:30:00-0430"), noon)
    assert.deepStrictEqual(micros("2026-03-01T12:01:15+00:01:15"), noon)
  })

  it("reads moments before 1970 and after the year 9999", () => {
    assert.deepStrictEqual(micros("1969-12-31T23:59:59.999999Z"), Option.some(-1n))
    assert.deepStrictEqual(micros("10000-01-01T00:00:00Z"), Option.some(253_402_300_800_000_000n))
  })

  it("reads no infinity, no year before Christ, no text without offset, no impossible date", () => {
    for (const text of [
      "infinity",
      "-infinity",
      "0044-03-15T00:00:00+00 BC",
      "2026-03-01T12:00:00",
      "2026-13-01T12:00:00Z",
      "2026-03-01T25:00:00Z",
      "2026-03-01T12:00:00.1234567Z",
      "2026-03-01",
      ""
    ]) {
      assert.isTrue(Option.isNone(Instant.parse(text)), text)
    }
  })

  it("writes UTC with three fraction digits, six where there are microseconds", () => {
    assert.strictEqual(Instant.format(instant(0n)), "1970-01-01T00:00:00.000Z")
    assert.strictEqual(Instant.format(instant(1_500_000n)), "1970-01-01T00:00:01.500Z")
    assert.strictEqual(Instant.format(instant(1_500_001n)), "1970-01-01T00:00:01.500001Z")
    assert.strictEqual(Instant.format(instant(-1n)), "1969-12-31T23:59:59.999999Z")
  })

  it.effect.prop(
    "reads back what it writes, to the microsecond",
    [
      Schema.BigInt.check(
        Schema.isBetweenBigInt({ minimum: -62_135_596_800_000_000n, maximum: 253_402_300_799_999_999n })
      )
    ],
    ([value]) => Effect.sync(() => Option.contains(Instant.parse(Instant.format(instant(value))), instant(value))),
    { arbitrary: { runs: 500 } }
  )

  it("adds and subtracts durations exactly", () => {
    const start = instant(1_000_001n)
    assert.strictEqual(Instant.plus(start, Duration.seconds(90)), instant(91_000_001n))
    assert.strictEqual(Instant.minus(start, Duration.hours(4)), instant(1_000_001n - 14_400_000_000n))
    assert.strictEqual(Instant.plus(start, Duration.nanos(1_000n)), instant(1_000_002n))
  })

  it("rounds whole seconds down, before 1970 too", () => {
    assert.strictEqual(Instant.wholeSecondsBetween(instant(0n), instant(1_999_999n)), 1)
    assert.strictEqual(Instant.wholeSecondsBetween(instant(0n), instant(2_000_000n)), 2)
    assert.strictEqual(Instant.wholeSecondsBetween(instant(1n), instant(0n)), -1)
  })

  it("gives seconds with their fraction", () => {
    assert.strictEqual(Instant.secondsBetween(instant(500_000n), instant(2_000_000n)), 1.5)
  })

  it("passes milliseconds on, rounded down", () => {
    assert.strictEqual(Instant.toMillis(Instant.fromMillis(1_700_000_000_123)), 1_700_000_000_123)
    assert.strictEqual(Instant.toMillis(instant(-1n)), -1)
    assert.strictEqual(Instant.toMillis(instant(1_999n)), 1)
  })

  it("decodes to a typed failure, never a throw, on text that is no instant", () => {
    const decode = Schema.decodeUnknownResult(Instant.InstantFromIso)
    assert.deepStrictEqual(decode("1970-01-01T00:00:00.000001Z"), Result.succeed(instant(1n)))
    assert.isTrue(Result.isFailure(decode("infinity")))
    assert.isTrue(Result.isFailure(decode(12)))
  })
})
