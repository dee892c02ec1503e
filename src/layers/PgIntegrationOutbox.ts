/** `messenger.outbox_messages` (W1, W6, X1). */
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { type OutboxMessage, topic } from "../domain/ConferenceEnded.ts"
import * as Instant from "../domain/Instant.ts"
import { IntegrationOutbox, type PendingEvent } from "../services/IntegrationOutbox.ts"
import { orRefused } from "./PgError.ts"
import * as PgOutbox from "./PgOutbox.ts"
import { channels } from "./PgWakeUps.ts"

const toRow = (message: OutboxMessage) => ({ ...message, createdAt: Instant.format(message.createdAt) })

const Row = Schema.Struct({
  id: Schema.BigInt,
  key: Schema.String,
  value: Schema.String,
  headers: Schema.Record(Schema.String, Schema.String),
  attempts: Schema.Int,
  createdAt: Instant.InstantFromIso
})

const shape: Omit<PgOutbox.Shape<PendingEvent>, "keyPolicy"> = {
  table: "outbox_messages",
  ours: `topic = '${topic}'`,
  open: "published_at is null",
  deliveredAt: "published_at",
  doneAt: "published_at",
  key: "message_key",
  // The text of a jsonb value never changes, so a repeat is the same to the byte.
  columns: `message_key as key, payload::text as value, headers, to_json(created_at) #>> '{}' as "createdAt"`,
  decode: Schema.decodeUnknownResult(Row)
}

export const layer = (options: Pick<PgOutbox.Shape<PendingEvent>, "keyPolicy">) =>
  Layer.effect(
    IntegrationOutbox,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      return IntegrationOutbox.of({
        ...PgOutbox.make(sql, { ...shape, ...options }),
        // The signal is part of the transaction: it goes out with the commit, and not at all after a rollback.
        append: (messages) =>
          messages.length === 0
            ? Effect.void
            : sql`with written as (
                insert into messenger.outbox_messages
                  (message_id, topic, message_key, event_type, payload, headers, created_at)
                select m."messageId", m.topic, m."messageKey", m."eventType", m.payload, m.headers, m."createdAt"
                from jsonb_to_recordset(${JSON.stringify(messages.map(toRow))}::jsonb) as m(
                  "messageId" uuid, topic text, "messageKey" text, "eventType" text, payload jsonb, headers jsonb,
                  "createdAt" timestamptz))
              select pg_notify(${channels.events}, '')`.pipe(orRefused("append outbox"), Effect.asVoid)
      })
    })
  )
