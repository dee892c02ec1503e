/** `messenger.outbox_messages` (W1, W6). */
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { OutboxMessage } from "../domain/ConferenceEnded.ts"
import * as Instant from "../domain/Instant.ts"
import { IntegrationOutbox } from "../services/IntegrationOutbox.ts"
import { orRefused } from "./PgError.ts"

const toRow = (message: OutboxMessage) => ({ ...message, createdAt: Instant.format(message.createdAt) })

export const layer = Layer.effect(
  IntegrationOutbox,
  Effect.gen(function* () {
    const sql = yield* SqlClient
    return IntegrationOutbox.of({
      append: (messages) =>
        messages.length === 0
          ? Effect.void
          : sql`insert into messenger.outbox_messages
                (message_id, topic, message_key, event_type, payload, headers, created_at)
              select m."messageId", m.topic, m."messageKey", m."eventType", m.payload, m.headers, m."createdAt"
              from jsonb_to_recordset(${JSON.stringify(messages.map(toRow))}::jsonb) as m(
                "messageId" uuid, topic text, "messageKey" text, "eventType" text, payload jsonb, headers jsonb,
                "createdAt" timestamptz)`.pipe(orRefused("append outbox"), Effect.asVoid)
    })
  })
)
