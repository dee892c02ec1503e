/** The tables of PostgreSQL read as the harness shows them: columns in camelCase, instants to the microsecond. */
import { Effect, Option } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import * as Instant from "../../src/domain/Instant.ts"
import type { Delivery } from "../fakes/Tables.ts"

const snakeCase = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const camelCase = (name: string) => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

const readInstant = (text: unknown): unknown =>
  typeof text === "string" ? Option.getOrElse(Instant.parse(text), () => text) : text

const isMoment = (column: string) => column.endsWith("_at") || column === "as_of"

/** A row as PostgreSQL takes it. */
export const toColumns = (row: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      snakeCase(name),
      typeof value === "bigint" ? Instant.format(Instant.Instant.make(value)) : value
    ])
  )

/** All rows of a table without the columns named. Its rows have the shape that the caller names. */
export const readAll = <Row>(
  sql: SqlClient,
  table: string,
  order: string,
  without: ReadonlyArray<string> = []
): Effect.Effect<ReadonlyArray<Row>> =>
  sql<{ row: Record<string, unknown> }>`select to_jsonb(t) as row from ${sql(`messenger.${table}`)} t
    order by ${sql.literal(order)}`.pipe(
    Effect.map((rows) =>
      rows.map(
        ({ row }) =>
          Object.fromEntries(
            Object.entries(row)
              .filter(([column]) => !without.includes(column))
              .map(([column, value]) => [camelCase(column), isMoment(column) ? readInstant(value) : value])
          ) as Row
      )
    ),
    Effect.orDie
  )

/** How far the rows of an outbox table have come, by id. */
export const readDelivery = (
  sql: SqlClient,
  table: string,
  deliveredAt: string,
  expiredAt: string
): Effect.Effect<ReadonlyArray<Delivery>> =>
  sql<Record<string, unknown>>`select id, attempts,
      last_error as "lastError", to_json(next_attempt_at) #>> '{}' as "nextAttemptAt",
      to_json(${sql.literal(deliveredAt)}::timestamptz) #>> '{}' as "deliveredAt",
      to_json(${sql.literal(expiredAt)}::timestamptz) #>> '{}' as "expiredAt",
      to_json(parked_at) #>> '{}' as "parkedAt"
    from ${sql(`messenger.${table}`)} order by id`.pipe(
    Effect.map((rows) =>
      rows.map(
        (row) =>
          Object.fromEntries(
            Object.entries(row).map(([name, value]) => [name, name.endsWith("At") ? readInstant(value) : value])
          ) as unknown as Delivery
      )
    ),
    Effect.orDie
  )
