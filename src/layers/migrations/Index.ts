/** An index on a table that may be the messenger's: created where that is allowed, else asked for in the log. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"

export interface Index {
  readonly name: string
  readonly table: string
  readonly on: string
}

// `create index if not exists` asks for the table's owner also where the index exists, so look first.
export const createIndex = Effect.fnUntraced(function* ({ name, table, on }: Index) {
  const sql = yield* SqlClient
  const [found] = yield* sql<{ exists: boolean; owned: boolean }>`select
      to_regclass(${`messenger.${name}`}) is not null as exists, pg_has_role(c.relowner, 'USAGE') as owned
    from pg_class c where c.oid = to_regclass(${`messenger.${table}`})`
  if (found?.exists === true) return
  const statement = `create index ${name} on messenger.${table} ${on}`
  if (found?.owned === true) return yield* sql.unsafe(statement)
  yield* Effect.logWarning("an index is missing on a table of another owner, who has to create it").pipe(
    Effect.annotateLogs({ statement })
  )
})
