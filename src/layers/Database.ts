/** The connection to PostgreSQL: one pool for batches and probes, and the configuration of single connections beside it. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { Store } from "../services/Store.ts"
import { StoreUnavailable } from "../services/StoreError.ts"
import { boundedWithTransaction } from "./PgBoundedTransaction.ts"
import { orUnavailable } from "./PgError.ts"

export interface DatabaseConfig {
  readonly url: Redacted.Redacted
  readonly poolSize: number
  /** False behind PgBouncer in transaction mode, which cannot keep named statements. */
  readonly preparedStatements: boolean
}

/** Client settings shared by the pool and the run lock's own connection. */
export const clientConfig = (config: DatabaseConfig, applicationName: string): PgClient.PgClientConfig => {
  // The client names its spans after these fields, not after the url.
  const url = new URL(Redacted.value(config.url))
  return {
    url: config.url,
    ...(url.hostname === "" ? {} : { host: decodeURIComponent(url.hostname).replace(/^\[(.*)\]$/, "$1") }),
    ...(url.port === "" ? {} : { port: Number(url.port) }),
    ...(url.pathname.length <= 1 ? {} : { database: decodeURIComponent(url.pathname.slice(1)) }),
    applicationName,
    prepare: config.preparedStatements,
    connectTimeout: "5 seconds",
    // A roster of many thousands is one row; the default of 16 MiB would drop the connection and fail the phase.
    maxMessageSize: 256 * 1024 * 1024
  }
}

const store = Layer.effect(
  Store,
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const ping = sql`select 1`.pipe(
      orUnavailable("ping"),
      Effect.timeoutOrElse({
        duration: "2 seconds",
        orElse: () =>
          Effect.fail(new StoreUnavailable({ operation: "ping", reason: "no answer within 2 s", isRetryable: true }))
      }),
      Effect.asVoid,
      Effect.withTracerEnabled(false)
    )
    return Store.of({ ping })
  })
)

const pool = (config: DatabaseConfig) =>
  PgClient.make({ ...clientConfig(config, "conference-room-reaper"), maxConnections: config.poolSize }).pipe(
    Effect.map((sql) => Object.assign(sql, { withTransaction: boundedWithTransaction(sql) }))
  )

/** The pool. Lazy: it builds with the server away; `Store.ping` tells whether it is there. */
export const layer = (config: DatabaseConfig) =>
  Layer.provideMerge(store, PgClient.layerFrom(pool(config))).pipe(Layer.orDie)
