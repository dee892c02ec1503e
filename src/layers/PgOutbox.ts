/**
 * Delivery out of an outbox table (X1, X2), the same for both of them. Rows are chosen by their state alone: ids are handed
 * out before commit, so "greater than the last one seen" would lose rows. Every statement is a transaction of its own, so
 * that none is open while something is sent. The predicates are literals, word for word those of the partial indexes in
 * `migrations/0002DeliveryIndexes`, so that generic plans use them too: delivered and parked rows cost a poll nothing.
 */
import { Array as Arr, Effect, Option, Result, type Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import * as Instant from "../domain/Instant.ts"
import type { DeliveryFailure, Outbox } from "../services/Outbox.ts"
import type { StoreUnavailable } from "../services/StoreError.ts"
import { orUnavailable } from "./PgError.ts"

export interface Shape<Row> {
  readonly table: string
  /** Which rows are ours to deliver. */
  readonly ours: string
  /** Rows that are still to be delivered, parked ones included. */
  readonly open: string
  readonly deliveredAt: string
  /** When delivery was over, by success or because it had lost its use; null before. */
  readonly doneAt: string
  /** Rows of one key keep their order. */
  readonly key: string
  /** The select list of a claim; `id` and `attempts` come beside it. */
  readonly columns: string
  readonly decode: (row: unknown) => Result.Result<Row, Schema.SchemaError>
  /** Which earlier rows of its key hold a row up: those that wait for another attempt, with `block` parked ones too. */
  readonly keyPolicy: "park" | "block"
}

interface ClaimedRow {
  readonly id: bigint
  readonly attempts: number
}

interface StatusRow {
  readonly pending: number
  readonly oldest: string | null
  readonly parked: number
}

const maxErrorLength = 2_000

// PostgreSQL takes neither NUL nor half a surrogate pair, and a row whose error cannot be written would be sent for ever.
const storable = (error: string) => error.slice(0, maxErrorLength).toWellFormed().replaceAll("\0", "\uFFFD")

const toFailureRow = (failure: DeliveryFailure) => ({
  id: String(failure.id),
  attempts: failure.attempts,
  error: storable(failure.error),
  nextAttemptAt: Instant.format(failure.nextAttemptAt),
  parked: failure.parked
})

const oneLine = (error: Schema.SchemaError) => error.message.replaceAll(/\s*\n\s*/g, " ")

export const make = <Row>(sql: SqlClient, shape: Shape<Row>) => {
  const table = sql.literal(`messenger.${shape.table}`)
  const ours = sql.literal(shape.ours)
  const open = sql.literal(shape.open)
  const key = sql.literal(shape.key)
  const deliveredAt = sql.literal(shape.deliveredAt)
  const doneAt = sql.literal(shape.doneAt)
  const pending = sql`${ours} and ${open} and parked_at is null`
  const at = (instant: Instant.Instant) => sql`${Instant.format(instant)}::timestamptz`
  const parkedHoldsUp = sql.literal(String(shape.keyPolicy === "block"))
  // Without statistics the planner would join all pending rows with all refused ones. `offset 0` makes it look each row up,
  // and the `case` leaves it no other index for that than the one of the refused rows.
  const isHeldUp = (asOf: Instant.Instant) => sql`exists (
    select from ${table} e
    where ${ours} and ${open} and (parked_at is not null or next_attempt_at is not null)
      and case when parked_at is null then next_attempt_at > ${at(asOf)} else ${parkedHoldsUp} end
      and e.${key} = m.${key} and e.id < m.id
    offset 0)`

  const claim = (asOf: Instant.Instant, limit: number) =>
    sql<ClaimedRow>`select id, attempts, ${sql.literal(shape.columns)}
      from ${table} m
      where ${pending} and (next_attempt_at is null or next_attempt_at <= ${at(asOf)})
        and not ${isHeldUp(asOf)}
      order by id
      limit ${limit}`.pipe(orUnavailable("claim pending"))

  const recordFailures = (failures: ReadonlyArray<DeliveryFailure>, moment: Instant.Instant) =>
    failures.length === 0
      ? Effect.void
      : sql`update ${table} m set attempts = f.attempts, last_error = f.error, next_attempt_at = f."nextAttemptAt",
            parked_at = case when f.parked then ${at(moment)} end
          from jsonb_to_recordset(${JSON.stringify(failures.map(toFailureRow))}::jsonb) as f(
            id bigint, attempts integer, error text, "nextAttemptAt" timestamptz, parked boolean)
          where m.id = f.id and ${ours} and ${open}`.pipe(orUnavailable("record failures"), Effect.asVoid)

  // A row that does not decode can never be delivered as it stands, whoever tries.
  const park = (row: ClaimedRow, error: Schema.SchemaError, asOf: Instant.Instant) =>
    recordFailures(
      [{ id: row.id, attempts: row.attempts + 1, error: oneLine(error), nextAttemptAt: asOf, parked: true }],
      asOf
    ).pipe(
      Effect.andThen(Effect.logError("outbox row parked: it does not decode")),
      Effect.annotateLogs({ table: shape.table, id: String(row.id), exception: oneLine(error) })
    )

  // Claimed anew after rows were parked: a parked row may hold up others of its key, and makes room for one more.
  const claimPending = (asOf: Instant.Instant, limit: number): Effect.Effect<ReadonlyArray<Row>, StoreUnavailable> =>
    Effect.gen(function* () {
      const rows = yield* claim(asOf, limit)
      const [decoded, malformed] = Arr.partition(rows, (row) =>
        Result.mapError(shape.decode(row), (error) => ({ row, error }))
      )
      if (malformed.length === 0) return decoded
      yield* Effect.forEach(malformed, ({ row, error }) => park(row, error, asOf), { discard: true })
      return yield* claimPending(asOf, limit)
    })

  return {
    claimPending,
    recordFailures,

    // Locked in the order of the ids, so that two that mark the same rows cannot lock each other out.
    markDelivered: (ids: ReadonlyArray<bigint>, moment: Instant.Instant) =>
      ids.length === 0
        ? Effect.void
        : sql`update ${table} set ${deliveredAt} = ${at(moment)}, parked_at = null
            where id = any(array(
              select id from ${table} where id = any(${ids}::bigint[]) and ${ours} and ${deliveredAt} is null
              order by id for update))`.pipe(orUnavailable("mark delivered"), Effect.asVoid),

    // An array, not a join: what is chosen under a limit must be chosen once.
    pruneDelivered: (before: Instant.Instant, limit: number) =>
      sql<{ n: number }>`with gone as (
          delete from ${table} where id = any(array(
            select id from ${table}
            where ${ours} and ${doneAt} is not null and parked_at is null and ${doneAt} < ${at(before)}
            order by ${doneAt} limit ${limit} for update skip locked))
          returning 1)
        select count(*)::int as n from gone`.pipe(
        orUnavailable("prune delivered"),
        Effect.map(([row]) => row?.n ?? 0)
      ),

    status: sql<StatusRow>`select p.pending, p.oldest, k.parked
      from (select count(*)::int as pending, to_json(min(created_at)) #>> '{}' as oldest from ${table} where ${pending}) p,
        (select count(*)::int as parked from ${table} where ${ours} and ${open} and parked_at is not null) k`.pipe(
      orUnavailable("outbox status"),
      Effect.map(([row]) => ({
        pending: row?.pending ?? 0,
        oldestPendingAt: Option.getOrNull(Instant.parse(row?.oldest ?? "")),
        parked: row?.parked ?? 0
      }))
    )
  } satisfies Outbox<Row>
}
