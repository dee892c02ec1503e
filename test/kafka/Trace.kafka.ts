/**
 * From a dead room to the record in Kafka, through the real process (X1, W3): the record is the stored row to the byte, and
 * its traceparent leads to one trace that shows cycle, room and publish.
 */
import { expect, it } from "@effect/vitest"
import { Clock, Effect, Schema } from "effect"
import { topic } from "../../src/domain/ConferenceEnded.ts"
import * as Instant from "../../src/domain/Instant.ts"
import { start } from "../e2e/Process.ts"
import * as Rooms from "../e2e/Rooms.ts"
import { type Received, receiver } from "../support/Receiver.ts"
import { before, emptySession } from "../support/Sessions.ts"
import { anyBrokers } from "./support/Cluster.ts"
import { readTopic } from "./support/Kcat.ts"

const roomCount = 40
const deals = 7

const Span = Schema.Struct({
  name: Schema.String,
  kind: Schema.Int,
  traceId: Schema.String,
  spanId: Schema.String,
  parentSpanId: Schema.optionalKey(Schema.String),
  links: Schema.optionalKey(Schema.Array(Schema.Struct({ traceId: Schema.String, spanId: Schema.String })))
})
const Export = Schema.fromJsonString(
  Schema.Struct({
    resourceSpans: Schema.Array(
      Schema.Struct({ scopeSpans: Schema.Array(Schema.Struct({ spans: Schema.Array(Span) })) })
    )
  })
)
const producerKind = 4

const spansOf = (received: ReadonlyArray<Received>) =>
  Effect.forEach(
    received.filter(({ path }) => path?.endsWith("/v1/traces")),
    ({ body }) => Schema.decodeEffect(Export)(body.toString())
  ).pipe(
    Effect.map((exports) =>
      exports.flatMap(({ resourceSpans }) =>
        resourceSpans.flatMap((each) => each.scopeSpans.flatMap((one) => one.spans))
      )
    )
  )

interface StoredRow {
  readonly key: string
  readonly dealId: string
  readonly payload: string
  readonly headers: Readonly<Record<string, string>>
}

const closedAndPublished = Effect.gen(function* () {
  const { brokers } = yield* anyBrokers
  const rooms = yield* Rooms.fresh
  const collector = yield* receiver((response) => response.setHeader("content-type", "application/json").end("{}"))
  const now = Instant.fromMillis(yield* Clock.currentTimeMillis)
  yield* rooms.insert(
    Array.from({ length: roomCount }, (_, n) =>
      emptySession(n, before(now, `${600 + n} seconds`), { dealId: emptySession(n % deals, now).dealId })
    )
  )
  const env = { ...rooms.env, KAFKA_BROKERS: brokers.join(), OTEL_EXPORTER_OTLP_ENDPOINT: collector.url.origin }
  yield* (yield* start(["topic", "create", "--replication", "1"], env)).ended
  const worker = yield* start(["run"], env)
  const stored =
    rooms.sql<StoredRow>`select o.message_key as key, s.deal_id::text as "dealId", o.payload::text as payload, o.headers
    from messenger.outbox_messages o
      join messenger.conference_sessions s on s.id::text = o.payload->>'ConferenceId'
    where o.published_at is not null order by o.id`.pipe(Effect.orDie)
  yield* rooms.until(
    "all events published",
    Effect.map(stored, ({ length }) => length === roomCount)
  )
  // What is left of the trace is sent at the end.
  yield* worker.kill("SIGTERM")
  expect(yield* worker.ended).toMatchObject({ code: 0 })
  const rows = yield* stored
  const own = new Set(rows.map(({ headers }) => headers["message-id"]))
  const records = (yield* readTopic(brokers, topic)).filter(({ headers }) => own.has(headers["message-id"]))
  return { rows, records, spans: yield* spansOf(collector.received) }
})

it.live("puts each closed room's event into Kafka once, as stored, in order per deal, in one trace (X1, W3)", () =>
  Effect.gen(function* () {
    const { rows, records, spans } = yield* closedAndPublished

    for (const [key, own] of Map.groupBy(rows, (row) => row.key)) {
      const seen = records.filter((record) => record.key === key)
      expect(new Set(seen.map(({ partition }) => partition)).size).toBe(1)
      expect(seen.map(({ payload, headers }) => ({ payload, headers }))).toEqual(
        own.map(({ payload, headers }) => ({ payload, headers }))
      )
    }
    expect(records.length).toBe(roomCount)
    for (const { key, dealId } of rows) expect(key).toBe(dealId)

    for (const { headers } of records) {
      const [, traceId, spanId] = headers.traceparent?.split("-") ?? []
      const trace = spans.filter((span) => span.traceId === traceId)
      expect(trace.find((span) => span.spanId === spanId)?.name).toBe("reaper.item")
      expect(trace.filter(({ name }) => name === "reaper.cycle").length).toBe(1)
      const published = trace.filter(({ name, parentSpanId }) => name === "outbox.publish" && parentSpanId === spanId)
      expect(published.map(({ kind }) => kind)).toEqual([producerKind])
      const carriers = published.flatMap(({ links }) => links ?? []).map((link) => link.spanId)
      expect(spans.filter(({ spanId: id }) => carriers.includes(id)).map(({ name }) => name)).toEqual(["outbox.send"])
    }
  })
)
