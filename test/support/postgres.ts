/** Databases of their own for test suites, on the one server that `globalSetup.ts` has started. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { inject } from "vitest"
import { migrate } from "../../src/layers/Migrations.ts"

export interface TestDatabase {
  readonly url: Redacted.Redacted
  readonly name: string
}

export const clientLayer = (url: Redacted.Redacted) => PgClient.layer({ url, maxConnections: 10 })

const urlOf = (name: string): Redacted.Redacted => {
  const url = new URL(inject("pgUrl"))
  url.pathname = name
  return Redacted.make(url.href)
}

const administer = <A, E>(work: Effect.Effect<A, E, SqlClient>) =>
  Effect.orDie(Effect.provide(work, clientLayer(urlOf("postgres"))))

/** A new and empty database for the scope; dropped at its end, whoever is still connected. */
export const freshDatabase = Effect.acquireRelease(
  administer(
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const name = `test_${crypto.randomUUID().replaceAll("-", "")}`
      yield* sql`create database ${sql(name)}`
      return { name, url: urlOf(name) } satisfies TestDatabase
    })
  ),
  ({ name }) =>
    administer(
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* sql`drop database if exists ${sql(name)} with (force)`
      })
    )
)

/** The same with the project's tables. */
export const migratedDatabase = Effect.tap(freshDatabase, ({ url }) =>
  Effect.orDie(Effect.provide(migrate, clientLayer(url)))
)
