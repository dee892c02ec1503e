/** Reads a topic back with kcat: a client that shares no code with ours. */
import { Effect, Schema } from "effect"
import { administration, forAWhile } from "./Administration.ts"
import { output } from "./Command.ts"
import { KafkaUnavailable } from "./KafkaUnavailable.ts"

export interface KafkaRecord {
  readonly partition: number
  readonly offset: number
  /** Milliseconds since 1970, as the producer or the broker has set them. */
  readonly timestamp: number
  readonly key: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly payload: string | null
  /** The payload as JSON. */
  readonly value: unknown
}

const Line = Schema.fromJsonString(
  Schema.Struct({
    partition: Schema.Int,
    offset: Schema.Int,
    ts: Schema.Int,
    // Name and value in turn.
    headers: Schema.optionalKey(Schema.Array(Schema.NullOr(Schema.String))),
    key: Schema.NullOr(Schema.String),
    payload: Schema.NullOr(Schema.String)
  })
)
const Json = Schema.fromJsonString(Schema.Unknown)

const pairs = (flat: ReadonlyArray<string | null>) =>
  Object.fromEntries(
    flat.flatMap((name, index) => (index % 2 === 0 ? [[String(name), String(flat[index + 1])] as const] : []))
  )

const toRecord = Effect.fnUntraced(
  function* (text: string) {
    const { ts, headers = [], ...line } = yield* Schema.decodeEffect(Line)(text)
    const value = line.payload === null ? null : yield* Schema.decodeEffect(Json)(line.payload)
    return { ...line, timestamp: ts, headers: pairs(headers), value } satisfies KafkaRecord
  },
  (effect, text) => Effect.mapError(effect, ({ message }) => new KafkaUnavailable({ message: `${message} in ${text}` }))
)

const readOnce = Effect.fnUntraced(function* (brokers: ReadonlyArray<string>, topic: string) {
  const from = ["-b", brokers.join(), "-C", "-t", topic, "-o", "beginning", "-e"]
  // The end of a partition is an empty answer, for which a broker takes half a second by default.
  const text = yield* output("kcat", [...from, "-q", "-J", "-X", "fetch.wait.max.ms=10"])
  return yield* Effect.forEach(
    text.split("\n").filter((line) => line !== ""),
    toRecord
  )
})

const reaches = (records: ReadonlyArray<KafkaRecord>, ends: ReadonlyArray<number>) =>
  ends.every(
    (end, partition) => end === 0 || records.some((one) => one.partition === partition && one.offset >= end - 1)
  )

/**
 * All records that are in the topic by now; in order within each partition. A new leader shows a reader nothing until its
 * followers have caught up, and kcat takes that for the end: so it reads until it has come to where the brokers end.
 */
export const readTopic = Effect.fnUntraced(function* (brokers: ReadonlyArray<string>, topic: string) {
  const ends = yield* administration(brokers).endOffsets(topic)
  return yield* readOnce(brokers, topic).pipe(
    Effect.filterOrFail(
      (records) => reaches(records, ends),
      (records) =>
        new KafkaUnavailable({ message: `kcat saw ${records.length} records of ${topic}, which end at ${ends}` })
    ),
    Effect.retry(forAWhile)
  )
})
