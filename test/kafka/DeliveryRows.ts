/** Rows of the outbox as the worker writes them, and what of them a consumer finds in the topic. */
import { randomUUID } from "node:crypto"
import { assert } from "@effect/vitest"
import { Effect, Schedule, Semaphore } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { messageId, type OutboxMessage, topic } from "../../src/domain/ConferenceEnded.ts"
import type { ConferenceId } from "../../src/domain/ConferenceSession.ts"
import * as Instant from "../../src/domain/Instant.ts"
import * as PgIntegrationOutbox from "../../src/layers/PgIntegrationOutbox.ts"
import { IntegrationOutbox } from "../../src/services/IntegrationOutbox.ts"
import { javaPartitions } from "./JavaPartitions.ts"
import { type KafkaRecord, readTopic } from "./support/Kcat.ts"

/** Deals whose partition of six Java's client has told. */
const deals = javaPartitions.flatMap(([key]) => (key.length === 36 ? [key] : []))

const payload = (conferenceId: string, dealId: string, participants: number) => ({
  ConferenceId: conferenceId,
  ChatId: randomUUID(),
  DealId: dealId,
  TenantId: randomUUID(),
  MediaType: "Video",
  Status: "Ended",
  EndReason: "EmptyTimeout",
  StartedByUserId: randomUUID(),
  StartedAt: "2026-11-01T09:00:00.000Z",
  EndedAt: "2026-11-01T10:00:00.123456Z",
  DurationSeconds: 3600,
  PeakParticipantCount: participants,
  Participants: Array.from({ length: participants }, () => ({
    UserId: randomUUID(),
    JoinedAt: "2026-11-01T09:00:00.000Z"
  })),
  WasRecorded: false
})

/** A conference of so many participants, of which some 18 000 are more than a broker takes in one record. */
const message = (run: string, dealId: string, participants: number): OutboxMessage => {
  const conferenceId = randomUUID() as ConferenceId
  const id = messageId(conferenceId)
  return {
    messageId: id,
    conferenceId,
    topic,
    messageKey: dealId,
    eventType: topic,
    payload: payload(conferenceId, dealId, participants),
    headers: {
      "message-id": id,
      "event-type": topic,
      "correlation-id": run,
      traceparent: `00-${randomUUID().replaceAll("-", "")}-b7ad6b7169203331-01`,
      "content-type": "application/json"
    },
    createdAt: Instant.fromMillis(Date.now())
  }
}

interface Stored {
  readonly id: string
  readonly key: string
  readonly payload: string
  readonly headers: Readonly<Record<string, string>>
  readonly published: boolean
  readonly parked: boolean
  readonly attempts: number
}

const partitionOf = new Map(javaPartitions.map(([key, , ofSix]) => [key, ofSix]))

const firstOfEach = (ids: ReadonlyArray<string | undefined>) => [...new Set(ids)]

/** Holds the topic against the table: each published row is there as it was stored, in the order of its deal. */
const compare = (rows: ReadonlyArray<Stored>, records: ReadonlyArray<KafkaRecord>, allPublished: boolean) => {
  const byId = new Map(rows.map((row) => [row.headers["message-id"], row]))
  const inOrder = [...records].sort((one, other) => one.partition - other.partition || one.offset - other.offset)
  for (const record of inOrder) {
    const row = byId.get(record.headers["message-id"])
    assert.isDefined(row)
    assert.strictEqual(record.key, row?.key)
    assert.strictEqual(record.payload, row?.payload)
    assert.deepStrictEqual(record.headers, row?.headers)
    assert.strictEqual(record.partition, partitionOf.get(String(record.key)))
  }
  const seen = new Set(inOrder.map(({ headers }) => headers["message-id"]))
  const published = rows.filter((row) => row.published)
  const lost = published.filter(({ headers }) => !seen.has(headers["message-id"]))
  assert.deepStrictEqual(lost, [], "marked as published, but not in the topic")
  if (allPublished) assert.strictEqual(seen.size, rows.length)
  for (const key of new Set(rows.map((row) => row.key))) {
    const ids = firstOfEach(inOrder.filter((one) => one.key === key).map(({ headers }) => headers["message-id"]))
    const sent = rows.filter((row) => row.key === key && seen.has(row.headers["message-id"]))
    assert.deepStrictEqual(
      ids,
      sent.map(({ headers }) => headers["message-id"])
    )
  }
  return { records: inOrder.length, repeats: inOrder.length - seen.size, published: published.length }
}

export const onOutbox = (sql: SqlClient) => {
  // Each test's own, since several may share a topic.
  const run = randomUUID()
  // Two transactions may commit in another order than that of their ids, which is then the order of delivery.
  const inTurn = Semaphore.makeUnsafe(1)
  const write = (messages: ReadonlyArray<OutboxMessage>) =>
    Effect.flatMap(IntegrationOutbox, ({ append }) => append(messages)).pipe(
      Effect.provide(PgIntegrationOutbox.layer({ keyPolicy: "park" })),
      Effect.provideService(SqlClient, sql),
      Effect.orDie,
      inTurn.withPermits(1)
    )
  const stored = sql<Stored>`select id::text as id, message_key as key, payload::text as payload, headers, attempts,
      published_at is not null as published, parked_at is not null as parked
    from messenger.outbox_messages where headers->>'correlation-id' = ${run} order by outbox_messages.id`.pipe(
    Effect.orDie
  )
  const left = sql<{ n: number }>`select count(*)::int as n from messenger.outbox_messages
    where published_at is null and parked_at is null`.pipe(
    Effect.orDie,
    Effect.map(([row]) => row?.n ?? 0)
  )
  const read = (brokers: ReadonlyArray<string>) =>
    Effect.map(readTopic(brokers, topic), (records) =>
      records.filter(({ headers }) => headers["correlation-id"] === run)
    )
  return {
    /** So many rows of all deals in turn, in one transaction. */
    append: (count: number) =>
      Effect.suspend(() =>
        write(Array.from({ length: count }, (_, n) => message(run, deals[n % deals.length] ?? "", 3)))
      ),
    appendTooLarge: Effect.suspend(() => write([message(run, deals[0] ?? "", 18_000)])),
    stored,
    left,
    drained: (patience: "30 seconds" | "3 minutes" = "30 seconds") =>
      left.pipe(
        Effect.repeat({ until: (n) => n === 0, schedule: Schedule.spaced("20 millis") }),
        Effect.timeoutOrElse({
          duration: patience,
          orElse: () => Effect.die(new Error("rows are left in the outbox"))
        }),
        Effect.asVoid
      ),
    read,
    /** All rows were published; fails unless the topic has them all, as stored and in order. */
    audit: (brokers: ReadonlyArray<string>) =>
      Effect.gen(function* () {
        const [rows, records] = [yield* stored, yield* read(brokers)]
        assert.isTrue(rows.every((row) => row.published && !row.parked))
        return compare(rows, records, true)
      }),
    /** Some rows may be left. */
    auditPublished: (brokers: ReadonlyArray<string>) =>
      Effect.gen(function* () {
        const records = yield* read(brokers)
        return compare(yield* stored, records, false)
      })
  }
}
