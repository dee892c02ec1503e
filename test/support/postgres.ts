/** Databases of their own for test suites, on the one server that `globalSetup.ts` has started. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { inject } from "vitest"
import { clientConfig, type DatabaseConfig } from "../../src/layers/Database.ts"
import { migrate } from "../../src/layers/Migrations.ts"

interface TestDatabase {
  readonly url: Redacted.Redacted
  readonly name: string
  /** How the code under test connects: straight, or through the pooler where there is one. */
  readonly worker: DatabaseConfig
}

export const clientLayer = (url: Redacted.Redacted) => PgClient.layer({ url, maxConnections: 10 })

const urlOf = (name: string, server = inject("pgUrl")): Redacted.Redacted => {
  const url = new URL(server)
  url.pathname = name
  return Redacted.make(url.href)
}

const workerOf = (name: string): DatabaseConfig => {
  const pooler = inject("pgPoolerUrl")
  return { url: urlOf(name, pooler), poolSize: 6, preparedStatements: pooler === undefined }
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
      return { name, url: urlOf(name), worker: workerOf(name) } satisfies TestDatabase
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
export const migratedDatabase = Effect.tap(freshDatabase, ({ worker }) =>
  Effect.orDie(Effect.provide(migrate, PgClient.layer(clientConfig(worker, "migrate"))))
)
