/**
 * Batch transactions (T1). The server bounds what a frozen or cut-off worker may hold: statements, lock waits and idle
 * time inside the transaction all have a time limit, so that join and leave never wait longer than LockTtl for it (L3).
 */
import { Duration, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { isSqlError } from "effect/sql/SqlError"
import { ReaperOptions } from "../services/ReaperOptions.ts"
import { Transaction } from "../services/Transaction.ts"
import { lostConnectionAsFailure, orRefused, orUnavailable, storeUnavailable } from "./PgError.ts"

export const layer = Layer.effect(
  Transaction,
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const options = yield* ReaperOptions
    const millis = (duration: Duration.Duration) => String(Math.max(1, Math.round(Duration.toMillis(duration))))
    const idleLimit = millis(options.lockTtl)
    // Short enough for all three phases to have their turn in a cycle while a statement hangs or a table is locked.
    const statementLimit = millis(Duration.times(options.maxRunDuration, 1 / 4))
    const lockLimit = millis(Duration.times(options.maxRunDuration, 1 / 6))

    // A generic plan for a set of rows of unknown size joins them by nested loop: seconds for a large batch.
    const setLimits = sql`select
      set_config('plan_cache_mode', 'force_custom_plan', true),
      set_config('idle_in_transaction_session_timeout', ${idleLimit}, true),
      set_config('statement_timeout', ${statementLimit}, true),
      set_config('lock_timeout', ${lockLimit}, true)`.pipe(orUnavailable("begin"))

    // Deferred constraints would fail the whole batch at COMMIT, where nobody can tell which row it was.
    const checkDeferred = sql`set constraints all immediate`.pipe(
      orRefused("check constraints"),
      Effect.andThen(sql`set constraints all deferred`.pipe(orUnavailable("check constraints")))
    )

    return Transaction.of({
      run: (body, onCommitted) =>
        sql
          .withTransaction(
            setLimits.pipe(
              Effect.andThen(body),
              Effect.tap((result) => sql.afterCommit(onCommitted(result)))
            )
          )
          .pipe(
            Effect.catchIf(isSqlError, (error) => Effect.fail(storeUnavailable("transaction")(error))),
            lostConnectionAsFailure("transaction")
          ),
      attempt: (body) =>
        sql
          .withTransaction(Effect.tap(body, () => checkDeferred))
          .pipe(Effect.catchIf(isSqlError, (error) => Effect.fail(storeUnavailable("savepoint")(error))))
    })
  })
)
