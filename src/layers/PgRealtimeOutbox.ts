/** `messenger.realtime_outbox` (W1, W2, X2). */
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as Instant from "../domain/Instant.ts"
import type { RealtimeSignal } from "../domain/RealtimeSignal.ts"
import { type PendingSignal, RealtimeOutbox } from "../services/RealtimeOutbox.ts"
import { orRefused, orUnavailable } from "./PgError.ts"
import * as PgOutbox from "./PgOutbox.ts"
import { channels } from "./PgWakeUps.ts"

const toRow = (signal: RealtimeSignal) => ({ ...signal, createdAt: Instant.format(signal.createdAt) })

const Row = Schema.Struct({
  id: Schema.BigInt,
  kind: Schema.String,
  targetKind: Schema.String,
  chatId: Schema.String,
  sessionKind: Schema.String,
  sessionId: Schema.String,
  signal: Schema.String,
  headers: Schema.Record(Schema.String, Schema.String),
  attempts: Schema.Int,
  createdAt: Instant.InstantFromIso
})

const shape: PgOutbox.Shape<PendingSignal> = {
  table: "realtime_outbox",
  ours: "kind = 'ConferenceEnded'",
  open: "dispatched_at is null and expired_at is null",
  deliveredAt: "dispatched_at",
  doneAt: "coalesce(dispatched_at, expired_at)",
  key: "chat_id",
  columns: `kind, target_kind as "targetKind", chat_id as "chatId", session_kind as "sessionKind",
    session_id as "sessionId", signal, headers, to_json(created_at) #>> '{}' as "createdAt"`,
  decode: Schema.decodeUnknownResult(Row),
  // A push is a hint that clients can do without, so none is ever held up for a parked one.
  keyPolicy: "park"
}

export const layer = Layer.effect(
  RealtimeOutbox,
  Effect.gen(function* () {
    const sql = yield* SqlClient
    return RealtimeOutbox.of({
      ...PgOutbox.make(sql, shape),

      append: (signals) =>
        signals.length === 0
          ? Effect.void
          : sql`with written as (
              insert into messenger.realtime_outbox
                (kind, target_kind, chat_id, session_kind, session_id, signal, headers, created_at)
              select s.kind, s."targetKind", s."chatId", s."sessionKind", s."sessionId", s.signal, s.headers, s."createdAt"
              from jsonb_to_recordset(${JSON.stringify(signals.map(toRow))}::jsonb) as s(
                kind text, "targetKind" text, "chatId" uuid, "sessionKind" text, "sessionId" uuid, signal text,
                headers jsonb, "createdAt" timestamptz))
            select pg_notify(${channels.signals}, '')`.pipe(orRefused("append realtime"), Effect.asVoid),

      expire: (before, limit, at) =>
        sql<{ n: number }>`with gone as (
            update messenger.realtime_outbox set expired_at = ${Instant.format(at)}::timestamptz where id = any(array(
              select id from messenger.realtime_outbox
              where ${sql.literal(shape.ours)} and ${sql.literal(shape.open)} and parked_at is null
                and created_at < ${Instant.format(before)}::timestamptz
              order by id limit ${limit} for update skip locked))
            returning 1)
          select count(*)::int as n from gone`.pipe(
          orUnavailable("expire"),
          Effect.map(([row]) => row?.n ?? 0)
        )
    })
  })
)
