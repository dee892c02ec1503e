/**
 * What one environment variable may hold: how its text is read, what is allowed, and what of it may be printed. A reader
 * never throws and its failure never quotes the text, so that a secret cannot leak through a message (O).
 */
import { Duration, Option, Redacted, Result } from "effect"
import * as DurationText from "../domain/DurationText.ts"

export interface Reader<A> {
  /** Says what is allowed, as the end of "allowed: …". */
  readonly allowed: string
  /** A failure completes the sentence "the value …". */
  readonly read: (text: string) => Result.Result<A, string>
  /** The value as a refusal may quote it; undefined where it may not. */
  readonly quote: (text: string) => string | undefined
  /** An accepted value as the start log shows it. */
  readonly show: (text: string) => string
}

export interface Variable<A> extends Reader<A> {
  readonly meaning: string
  /** As the options table says it. */
  readonly byDefault: string
  readonly fallback: A
}

/** `byDefault` is read by the variable's own reader: what the table says is what is used. */
export const withDefault = <A>(meaning: string, byDefault: string, reader: Reader<A>): Variable<A> => ({
  ...reader,
  meaning,
  byDefault,
  fallback: Result.getOrThrow(reader.read(byDefault))
})

export const optional = <A>(meaning: string, reader: Reader<A>, byDefault = "unset"): Variable<Option.Option<A>> => ({
  ...reader,
  read: (text) => Result.map(reader.read(text), Option.some),
  meaning,
  byDefault,
  fallback: Option.none()
})

const plain = <A>(allowed: string, read: Reader<A>["read"]): Reader<A> => ({
  allowed,
  read,
  quote: (text) => text,
  show: (text) => text
})

/** `max` keeps a timer below 2^31 - 1 ms, past which it fires at once, or a timestamp in its range. */
export const duration = (max: Duration.Duration, maxText: string, zero: "refused" | "off" = "refused") =>
  plain<Duration.Duration>(
    `a duration ${zero === "off" ? "of 0 (off)" : "longer than 0"} up to ${maxText} in whole milliseconds: ${DurationText.forms}`,
    (text) =>
      text === "0" && zero === "off"
        ? Result.succeed(Duration.zero)
        : Result.flatMap(DurationText.parse(text), (value) => {
            if (Duration.isGreaterThan(value, max)) return Result.fail(`is longer than ${maxText}`)
            if (!Number.isInteger(Duration.toMillis(value))) return Result.fail("has parts of a millisecond")
            if (Duration.isZero(value) && zero === "refused") return Result.fail("is not longer than 0")
            return Result.succeed(value)
          })
  )

export const wholeNumber = (min: number, max: number) =>
  plain<number>(`a whole number from ${min} to ${max}, decimal digits only`, (text) => {
    if (!/^[0-9]+$/.test(text)) return Result.fail("is not a whole number in decimal digits")
    const value = Number(text)
    return value < min || value > max ? Result.fail("is out of range") : Result.succeed(value)
  })

const booleans = new Map([
  ...["true", "1", "yes", "on"].map((word) => [word, true] as const),
  ...["false", "0", "no", "off"].map((word) => [word, false] as const)
])

export const boolean = plain<boolean>("true or false (also 1, 0, yes, no, on, off)", (text) =>
  Result.fromNullishOr(booleans.get(text.toLowerCase()), () => "is neither true nor false")
)

/** One of the words, in any case; the value is the word as written here. */
export const oneOf = <const Word extends string>(...words: ReadonlyArray<Word>) =>
  plain<Word>(words.join(", ").toLowerCase(), (text) =>
    Result.fromNullishOr(
      words.find((word) => word.toLowerCase() === text.toLowerCase()),
      () => "is not one of them"
    )
  )

export const text = (allowed: string) =>
  plain<string>(allowed, (value) => (value.trim() === "" ? Result.fail("is blank") : Result.succeed(value)))

export const secret: Reader<Redacted.Redacted<string>> = {
  allowed: "any text that is not blank",
  read: (value) => (value.trim() === "" ? Result.fail("is blank") : Result.succeed(Redacted.make(value))),
  quote: () => undefined,
  show: () => "<redacted>"
}
