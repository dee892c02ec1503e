/** The project's migrations: applied in order, all pending ones in one transaction, one migrator at a time. */
import { Effect } from "effect"
import * as Migrator from "effect/sql/Migrator"
import { SqlClient } from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { StoreUnavailable } from "../services/StoreError.ts"
import tables from "./migrations/0001Tables.ts"
import deliveryIndexes from "./migrations/0002DeliveryIndexes.ts"
import { lostConnectionAsFailure, orUnavailable } from "./PgError.ts"

const table = "messenger.conference_reaper_migrations"

const loader = Migrator.fromRecord({ "0001_tables": tables, "0002_delivery_indexes": deliveryIndexes })

const schemaExists = Effect.gen(function* () {
  const sql = yield* SqlClient
  const [row] = yield* sql<{ exists: boolean }>`select to_regnamespace('messenger') is not null as exists`
  return row?.exists === true
})

// `create schema if not exists` asks for the right to create even where the schema exists, so look first; and of two that
// create it at the same moment it fails one, so look again.
const ensureSchema = Effect.gen(function* () {
  if (yield* schemaExists) return
  const sql = yield* SqlClient
  yield* sql`create schema messenger`.pipe(
    Effect.catch((error) => Effect.flatMap(schemaExists, (exists) => (exists ? Effect.void : Effect.fail(error))))
  )
})

const toSqlError = (error: Migrator.MigrationError | SqlError): Effect.Effect<never, SqlError> => {
  if (isSqlError(error)) return Effect.fail(error)
  return isSqlError(error.cause) ? Effect.fail(error.cause) : Effect.die(error)
}

/** Names of the migrations that were applied now, oldest first; empty when the database was up to date. */
export const migrate: Effect.Effect<ReadonlyArray<string>, StoreUnavailable, SqlClient> = ensureSchema.pipe(
  Effect.andThen(Migrator.make({})({ loader, table })),
  Effect.catch(toSqlError),
  orUnavailable("migrate"),
  lostConnectionAsFailure("migrate"),
  Effect.map((applied) => applied.map(([id, name]) => `${String(id).padStart(4, "0")}_${name}`))
)
