/** What docs/delivery.md tells the owner of the tables to create is what the migration creates. */
import { readFileSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { clientLayer, migratedDatabase } from "../support/postgres.ts"

const document = readFileSync(new URL("../../docs/delivery.md", import.meta.url), "utf8")
const statements = document.match(/^create index concurrently [^;]+;/gm) ?? []

it.live("the documented indexes are those of the migration (X1, X2)", () =>
  Effect.gen(function* () {
    const { url } = yield* migratedDatabase
    yield* Effect.gen(function* () {
      const sql = yield* SqlClient
      const definitions = sql<{ name: string; definition: string }>`
        select indexname as name, indexdef as definition from pg_indexes
        where schemaname = 'messenger' and indexname ~ '^ix_(outbox_messages|realtime_outbox)_' order by 1`
      const migrated = yield* definitions
      expect(migrated.length).toBeGreaterThan(0)
      for (const { name } of migrated) yield* sql`drop index ${sql(`messenger.${name}`)}`
      for (const statement of statements) yield* sql.unsafe(statement)
      expect(yield* definitions).toEqual(migrated)
    }).pipe(Effect.provide(clientLayer(url)))
  })
)
