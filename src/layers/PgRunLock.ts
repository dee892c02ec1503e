/**
 * The run lock (L2, L3): a transaction-scoped advisory lock in a transaction of its own, on a connection of its own, for
 * the length of one cycle.
 *
 * - The holder's process dies: the server sees the socket close and frees the lock at once.
 * - The holder is frozen or cut off: the server ends the idle transaction after LockTtl.
 * - Behind PgBouncer in transaction mode the open transaction pins one backend, so lock and release meet.
 * - Nothing can be left over: no lock outlives its transaction, and no connection is reused.
 */
import { PgClient } from "@effect/sql-pg"
import { Duration, Effect, Fiber, Layer, Option } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import type { SqlClient } from "effect/sql/SqlClient"
import * as Instant from "../domain/Instant.ts"
import { ReaperOptions } from "../services/ReaperOptions.ts"
import { LockLost, RunLock } from "../services/RunLock.ts"
import { StoreUnavailable } from "../services/StoreError.ts"
import { clientConfig, type DatabaseConfig } from "./Database.ts"
import { orUnavailable, storeUnavailable } from "./PgError.ts"

/**
 * The advisory key, one 64-bit number: the ASCII bytes of "confreap". PostgreSQL keeps the one-bigint and the two-int
 * key spaces apart, so no `pg_advisory_lock(int, int)` can meet it. All workers of one database share it.
 */
export const lockKey = "7165066918454714736"

export const applicationName = "conference-room-reaper run-lock"

interface Grant {
  readonly granted: boolean
  readonly databaseTime: string
  readonly transactionStart: string
}

// `clock_timestamp()` tells the time of this statement; `now()` the start of the transaction, its fingerprint.
const tryLock = (sql: SqlClient, lockTtl: Duration.Duration) =>
  sql`begin`.pipe(
    Effect.andThen(
      sql<Grant>`select
        set_config('idle_in_transaction_session_timeout', ${String(Math.round(Duration.toMillis(lockTtl)))}, true),
        pg_try_advisory_xact_lock(${lockKey}::bigint) as granted,
        to_json(clock_timestamp()) #>> '{}' as "databaseTime",
        now()::text as "transactionStart"`
    ),
    orUnavailable("lock")
  )

const confirm = (sql: SqlClient, transactionStart: string): Effect.Effect<void, LockLost> =>
  sql<{ now: string }>`select now()::text as now`.pipe(
    Effect.mapError((error) => new LockLost({ reason: storeUnavailable("confirm")(error).reason })),
    Effect.timeoutOrElse({
      duration: "5 seconds",
      orElse: () => Effect.fail(new LockLost({ reason: "its connection does not answer" }))
    }),
    Effect.flatMap(([row]) =>
      row?.now === transactionStart ? Effect.void : Effect.fail(new LockLost({ reason: "its transaction has ended" }))
    )
  )

// Closing the connection frees the lock too; asking first makes it free before the next statement of anybody. In a fiber
// of its own, so that a dead link cannot hold up the cycle.
const release = (sql: SqlClient) =>
  Effect.forkDetach(Effect.ignoreCause(sql`rollback`), { startImmediately: true }).pipe(
    Effect.flatMap((fiber) => Effect.timeoutOption(Fiber.await(fiber), "1 second"))
  )

export const layer = (config: DatabaseConfig) =>
  Layer.effect(
    RunLock,
    Effect.gen(function* () {
      const options = yield* ReaperOptions
      const connect = PgClient.makeClient(clientConfig(config, applicationName)).pipe(orUnavailable("lock"))
      const tryAcquire = Effect.gen(function* () {
        const sql = yield* connect
        yield* Effect.addFinalizer(() => release(sql))
        const [grant] = yield* tryLock(sql, options.lockTtl)
        if (grant?.granted !== true) return Option.none()
        const databaseTime = yield* Effect.fromOption(Instant.parse(grant.databaseTime)).pipe(
          Effect.mapError(
            () => new StoreUnavailable({ operation: "lock", reason: "unreadable database time", isRetryable: true })
          )
        )
        return Option.some({ databaseTime, confirm: confirm(sql, grant.transactionStart) })
      }).pipe(
        Effect.timeoutOrElse({
          duration: options.maxRunDuration,
          orElse: () =>
            Effect.fail(new StoreUnavailable({ operation: "lock", reason: "no answer in time", isRetryable: true }))
        }),
        Effect.provide(Reactivity.layer)
      )
      return RunLock.of({ tryAcquire })
    })
  )
