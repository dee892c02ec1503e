/**
 * The run locks of the reaper (L2, L3) and of the dispatchers (X1, X2): a transaction-scoped advisory lock in a transaction
 * of its own, on a connection of its own, for the length of one cycle or session.
 *
 * - The holder's process dies: the server sees the socket close and frees the lock at once.
 * - The holder is frozen or cut off: the server ends the idle transaction after the lock's time to live.
 * - Behind PgBouncer in transaction mode the open transaction pins one backend, so lock and release meet.
 * - Nothing can be left over: no lock outlives its transaction, and no connection is reused.
 */
import { PgClient } from "@effect/sql-pg"
import { Duration, Effect, Fiber, Layer, Option } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import type { SqlClient } from "effect/sql/SqlClient"
import * as Instant from "../domain/Instant.ts"
import { type DispatcherLock, OutboxLock, RealtimeLock } from "../services/DispatcherLocks.ts"
import { ReaperOptions } from "../services/ReaperOptions.ts"
import { LockLost, RunLock } from "../services/RunLock.ts"
import { StoreUnavailable } from "../services/StoreError.ts"
import { clientConfig, type DatabaseConfig } from "./Database.ts"
import { orUnavailable, storeUnavailable } from "./PgError.ts"

/**
 * The advisory keys, each one 64-bit number: the ASCII bytes of "confreap", "confrout" and "confrhub". PostgreSQL keeps
 * the one-bigint and the two-int key spaces apart, so no `pg_advisory_lock(int, int)` can meet them. All instances that
 * share a database share them.
 */
export const lockKey = "7165066918454714736"
export const outboxLockKey = "7165066918455375220"
export const realtimeLockKey = "7165066918454916450"

export const applicationName = "conference-room-reaper run-lock"

interface Shape {
  readonly key: string
  readonly applicationName: string
  /** How long a holder that says nothing keeps it. */
  readonly timeToLive: Duration.Duration
  /** How long the database may take to answer a try. */
  readonly answerLimit: Duration.Duration
}

interface Grant {
  readonly granted: boolean
  readonly databaseTime: string
  readonly transactionStart: string
}

// `clock_timestamp()` tells the time of this statement; `now()` the start of the transaction, its fingerprint.
const tryLock = (sql: SqlClient, { key, timeToLive }: Shape) =>
  sql`begin`.pipe(
    Effect.andThen(
      sql<Grant>`select
        set_config('idle_in_transaction_session_timeout', ${String(Math.round(Duration.toMillis(timeToLive)))}, true),
        pg_try_advisory_xact_lock(${key}::bigint) as granted,
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

const make = (config: DatabaseConfig, shape: Shape): DispatcherLock => {
  const tryAcquire = Effect.gen(function* () {
    const sql = yield* PgClient.makeClient(clientConfig(config, shape.applicationName)).pipe(orUnavailable("lock"))
    yield* Effect.addFinalizer(() => release(sql))
    const [grant] = yield* tryLock(sql, shape)
    if (grant?.granted !== true) return Option.none()
    const databaseTime = yield* Effect.fromOption(Instant.parse(grant.databaseTime)).pipe(
      Effect.mapError(
        () => new StoreUnavailable({ operation: "lock", reason: "unreadable database time", isRetryable: true })
      )
    )
    return Option.some({ databaseTime, confirm: confirm(sql, grant.transactionStart) })
  }).pipe(
    Effect.timeoutOrElse({
      duration: shape.answerLimit,
      orElse: () =>
        Effect.fail(new StoreUnavailable({ operation: "lock", reason: "no answer in time", isRetryable: true }))
    }),
    Effect.provide(Reactivity.layer)
  )
  return { tryAcquire }
}

/** The reaper's, with its options. */
export const layer = (config: DatabaseConfig) =>
  Layer.effect(
    RunLock,
    Effect.map(ReaperOptions, ({ lockTtl, maxRunDuration }) =>
      make(config, { key: lockKey, applicationName, timeToLive: lockTtl, answerLimit: maxRunDuration })
    )
  )

// Longer than any send with its retries takes: the lock is confirmed before each and idle while it is under way.
const dispatcherTimes = { timeToLive: Duration.minutes(2), answerLimit: Duration.seconds(10) }

export const outboxLayer = (config: DatabaseConfig) =>
  Layer.succeed(
    OutboxLock,
    make(config, {
      key: outboxLockKey,
      applicationName: "conference-room-reaper outbox-lock",
      ...dispatcherTimes
    })
  )

export const realtimeLayer = (config: DatabaseConfig) =>
  Layer.succeed(
    RealtimeLock,
    make(config, {
      key: realtimeLockKey,
      applicationName: "conference-room-reaper realtime-lock",
      ...dispatcherTimes
    })
  )
