/**
 * Where a benchmark runs: the server of BENCH_DATABASE_URL, else the product's own embedded PostgreSQL in a folder that is
 * removed afterwards. Writes are as durable there as in production. Databases are new ones beside that of the url, dropped
 * at the end.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { DatabaseConfig } from "../src/layers/Database.ts"
import { serve } from "../src/layers/EmbeddedPostgres.ts"
import { migrate } from "../src/layers/Migrations.ts"
import * as Production from "../src/layers/Production.ts"
import * as Settings from "../src/services/Settings.ts"

export interface BenchServer {
  readonly url: Redacted.Redacted
  /** The embedded server's log; none for a server that was named by its url. */
  readonly log: Option.Option<string>
}

const embedded = Effect.gen(function* () {
  const folder = yield* Effect.promise(() => mkdtemp(join(tmpdir(), "conference-room-reaper-bench-")))
  yield* Effect.addFinalizer(() => Effect.promise(() => rm(folder, { recursive: true })))
  // Root's server runs under another account, which has to pass through.
  yield* Effect.promise(() => chmod(folder, 0o711))
  const relocated = yield* Effect.acquireRelease(Effect.succeed({ folder: "" }), ({ folder }) =>
    Effect.promise(async () => (folder === "" ? undefined : rm(folder, { recursive: true })))
  )
  const server = yield* serve(folder, { exclusive: true, durable: true, database: "postgres" })
  if (server.relocated) relocated.folder = dirname(server.dataDirectory)
  return { url: server.url, log: Option.some(join(dirname(server.dataDirectory), "postgres.log")) }
})

export const start = Effect.suspend(() => {
  const url = process.env.BENCH_DATABASE_URL
  return url ? Effect.succeed<BenchServer>({ url: Redacted.make(url), log: Option.none() }) : embedded
})

const beside = (url: Redacted.Redacted, database: string): Redacted.Redacted => {
  const other = new URL(Redacted.value(url))
  other.pathname = database
  return Redacted.make(other.href)
}

/** Runs one piece of work on a connection of its own. */
export const on = <A, E>(url: Redacted.Redacted, work: Effect.Effect<A, E, SqlClient>) =>
  Effect.provide(work, PgClient.layer({ url, maxConnections: 1 }), { local: true })

const drop = (server: BenchServer, name: string) =>
  on(
    server.url,
    Effect.flatMap(SqlClient, (sql) => sql.unsafe(`drop database if exists ${name} with (force)`))
  )

/** A new database with the project's tables, for the scope. */
export const database = Effect.fnUntraced(function* (server: BenchServer, label: string) {
  const name = `reaper_bench_${process.pid}_${label}`
  yield* on(
    server.url,
    Effect.flatMap(SqlClient, (sql) => sql.unsafe(`create database ${name}`))
  )
  yield* Effect.addFinalizer(() => Effect.ignore(drop(server, name)))
  const url = beside(server.url, name)
  yield* on(url, migrate)
  return { name, url }
})

/** The worker's real wiring, on a database, with settings named as in the environment. */
export const worker = (url: Redacted.Redacted, variables: Settings.Environment = {}) =>
  Effect.gen(function* () {
    const settings = yield* Effect.fromResult(Settings.parse(variables, { hostname: "bench", pid: 0 }))
    const { poolSize, preparedStatements } = settings.database
    const config: DatabaseConfig = { url, poolSize, preparedStatements }
    return yield* Layer.build(Layer.fresh(Production.layer(settings, config)))
  })
