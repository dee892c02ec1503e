/** `messenger.realtime_outbox` (W1, W2). */
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as Instant from "../domain/Instant.ts"
import type { RealtimeSignal } from "../domain/RealtimeSignal.ts"
import { RealtimeOutbox } from "../services/RealtimeOutbox.ts"
import { orRefused } from "./PgError.ts"

const toRow = (signal: RealtimeSignal) => ({ ...signal, createdAt: Instant.format(signal.createdAt) })

export const layer = Layer.effect(
  RealtimeOutbox,
  Effect.gen(function* () {
    const sql = yield* SqlClient
    return RealtimeOutbox.of({
      append: (signals) =>
        signals.length === 0
          ? Effect.void
          : sql`insert into messenger.realtime_outbox
                (kind, target_kind, chat_id, session_kind, session_id, signal, headers, created_at)
              select s.kind, s."targetKind", s."chatId", s."sessionKind", s."sessionId", s.signal, s.headers, s."createdAt"
              from jsonb_to_recordset(${JSON.stringify(signals.map(toRow))}::jsonb) as s(
                kind text, "targetKind" text, "chatId" uuid, "sessionKind" text, "sessionId" uuid, signal text,
                headers jsonb, "createdAt" timestamptz)`.pipe(orRefused("append realtime"), Effect.asVoid)
    })
  })
)
