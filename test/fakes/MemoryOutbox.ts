/** Delivery out of an in-memory outbox table, by the rules of the port: chosen by state, ordered by key, parked with its error. */
import { Array as Arr, Effect, Result } from "effect"
import type { Instant } from "../../src/domain/Instant.ts"
import type { Outbox } from "../../src/services/Outbox.ts"
import type { StoreUnavailable } from "../../src/services/StoreError.ts"
import type { Operation } from "./Faults.ts"
import type { Database, MemoryTx } from "./MemoryDatabase.ts"
import { autocommitted } from "./MemoryTransaction.ts"
import type { Rows } from "./Tables.ts"

type Name = "outbox" | "realtime"

interface Shape<N extends Name, Row> {
  readonly table: N
  readonly isOurs: (row: Rows[N]) => boolean
  readonly key: (row: Rows[N]) => string
  /** The row as it goes out, or why it cannot. */
  readonly decode: (row: Rows[N]) => Result.Result<Row, string>
  readonly keyPolicy: "park" | "block"
}

const isDone = ({ deliveredAt, expiredAt }: Rows[Name]) => deliveredAt !== null || expiredAt !== null
const isPending = (row: Rows[Name]) => !isDone(row) && row.parkedAt === null
const waitsAt = (row: Rows[Name], asOf: Instant) => row.nextAttemptAt !== null && row.nextAttemptAt > asOf

/** Why a value is no set of headers; undefined when it is one. */
export const headersProblem = (headers: unknown): string | undefined =>
  typeof headers === "object" &&
  headers !== null &&
  !Array.isArray(headers) &&
  Object.values(headers).every((value) => typeof value === "string")
    ? undefined
    : "headers: expected an object of strings"

export const make = <N extends Name, Row>(database: Database, shape: Shape<N, Row>) => {
  const on = <A, E>(operation: Operation, body: (tx: MemoryTx) => Effect.Effect<A, E>) =>
    autocommitted(database, operation, body)
  /** Ours, with their keys, in the order of their ids. */
  const ours = (tx: MemoryTx) =>
    [...tx.rows(shape.table)].filter(([, row]) => shape.isOurs(row)).sort(([, a], [, b]) => Number(a.id - b.id))
  const put = (tx: MemoryTx, key: string, row: Rows[N] | undefined) => tx.put(shape.table, key, row)
  /** Changes those of at most `limit` rows that nobody else has locked; says how many. */
  const change = (
    tx: MemoryTx,
    rows: ReadonlyArray<readonly [string, Rows[N]]>,
    to: (row: Rows[N]) => Rows[N] | undefined,
    limit: number
  ) => {
    const free = rows.filter(([key]) => !tx.isLockedByOther(shape.table, key)).slice(0, limit)
    return Effect.as(
      Effect.forEach(free, ([key, row]) => put(tx, key, to(row))),
      free.length
    )
  }

  const claimable = (tx: MemoryTx, asOf: Instant, limit: number) => {
    const holding = new Set<string>()
    const due: Array<Rows[N]> = []
    for (const [, row] of ours(tx)) {
      if (isDone(row)) continue
      const key = shape.key(row)
      if (row.parkedAt !== null) {
        if (shape.keyPolicy === "block") holding.add(key)
      } else if (waitsAt(row, asOf)) holding.add(key)
      else if (!holding.has(key) && due.length < limit) due.push(row)
    }
    return due
  }

  const recordFailures: Outbox<Row>["recordFailures"] = (failures, at) =>
    on("recordFailures", (tx) =>
      Effect.forEach(
        failures,
        ({ id, attempts, error, nextAttemptAt, parked }) => {
          const found = ours(tx).find(([, row]) => row.id === id && !isDone(row))
          if (found === undefined) return Effect.void
          const [key, row] = found
          // As PostgreSQL stores text.
          const lastError = error.toWellFormed().replaceAll("\0", "\uFFFD")
          return put(tx, key, { ...row, attempts, lastError, nextAttemptAt, parkedAt: parked ? at : null })
        },
        { discard: true }
      )
    )

  const claimPending = (asOf: Instant, limit: number): Effect.Effect<ReadonlyArray<Row>, StoreUnavailable> =>
    Effect.gen(function* () {
      const rows = yield* on("claimPending", (tx) => Effect.sync(() => claimable(tx, asOf, limit)))
      const [decoded, malformed] = Arr.partition(rows, (row) =>
        Result.mapError(shape.decode(row), (error) => ({
          id: row.id,
          attempts: row.attempts + 1,
          error,
          nextAttemptAt: asOf,
          parked: true
        }))
      )
      if (malformed.length === 0) return decoded
      yield* recordFailures(malformed, asOf)
      for (const { id, error } of malformed) {
        yield* Effect.logError("outbox row parked: it does not decode").pipe(
          Effect.annotateLogs({ table: shape.table, id: String(id), exception: error })
        )
      }
      return yield* claimPending(asOf, limit)
    })

  return {
    claimPending,
    recordFailures,
    markDelivered: (ids, at) =>
      on("markDelivered", (tx) =>
        Effect.forEach(
          ours(tx).filter(([, row]) => ids.includes(row.id) && row.deliveredAt === null),
          ([key, row]) => put(tx, key, { ...row, deliveredAt: at, parkedAt: null }),
          { discard: true }
        )
      ),
    pruneDelivered: (before, limit) =>
      on("pruneDelivered", (tx) => {
        const doneAt = ({ deliveredAt, expiredAt }: Rows[Name]) => deliveredAt ?? expiredAt
        const old = ours(tx).filter(([, row]) => row.parkedAt === null && (doneAt(row) ?? before) < before)
        return change(tx, old, () => undefined, limit)
      }),
    status: on("outboxStatus", (tx) =>
      Effect.sync(() => {
        const rows = ours(tx).map(([, row]) => row)
        const pending = rows.filter(isPending)
        return {
          pending: pending.length,
          oldestPendingAt: pending.reduce<Instant | null>(
            (oldest, { createdAt }) => (oldest === null || createdAt < oldest ? createdAt : oldest),
            null
          ),
          parked: rows.filter((row) => !isDone(row) && row.parkedAt !== null).length
        }
      })
    ),
    expire: (before: Instant, limit: number, at: Instant) =>
      on("expire", (tx) => {
        const late = ours(tx).filter(([, row]) => isPending(row) && row.createdAt < before)
        return change(tx, late, (row) => ({ ...row, expiredAt: at }), limit)
      })
  } satisfies Outbox<Row> & { readonly expire: unknown }
}
