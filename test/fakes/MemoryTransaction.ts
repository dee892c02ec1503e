/** Transactions of the in-memory database, with the same edges as PostgreSQL's: COMMIT is not interruptible (T1). */
import { Context, Effect, Exit, Layer } from "effect"
import type { StoreUnavailable } from "../../src/services/StoreError.ts"
import { Transaction } from "../../src/services/Transaction.ts"
import type { Operation } from "./Faults.ts"
import { type Database, MemoryDatabase, type MemoryTx } from "./MemoryDatabase.ts"

/** The open transaction of the fiber. */
const CurrentTx = Context.Reference<MemoryTx | undefined>("test/CurrentTx", { defaultValue: () => undefined })

/** Runs one statement in the open transaction. Outside of one it is a mistake of the program, so a defect. */
export const statement = <A, E>(
  operation: Operation,
  body: (tx: MemoryTx) => Effect.Effect<A, E>
): Effect.Effect<A, E | StoreUnavailable> =>
  Effect.flatMap(CurrentTx, (tx) =>
    tx === undefined ? Effect.die(`${operation} outside a transaction`) : tx.statement(operation, body(tx))
  )

/** Runs one statement in the open transaction, or in one of its own. */
export const autocommitted = <A, E>(
  database: Database,
  operation: Operation,
  body: (tx: MemoryTx) => Effect.Effect<A, E>
): Effect.Effect<A, E | StoreUnavailable> =>
  Effect.flatMap(CurrentTx, (current) =>
    current === undefined
      ? Effect.acquireUseRelease(
          database.begin,
          (tx) => tx.statement(operation, body(tx)).pipe(Effect.tap(tx.end)),
          (tx) => tx.rollback
        )
      : current.statement(operation, body(current))
  )

export const layer = Layer.effect(
  Transaction,
  Effect.gen(function* () {
    const database = yield* MemoryDatabase

    return Transaction.of({
      run: (body, onCommitted) =>
        Effect.uninterruptibleMask((restore) =>
          Effect.gen(function* () {
            if ((yield* CurrentTx) !== undefined) return yield* Effect.die("a transaction within a transaction")
            yield* database.faults.hit("begin")
            const tx = yield* database.begin
            const exit = yield* Effect.exit(restore(Effect.provideService(body, CurrentTx, tx)))
            if (Exit.isFailure(exit)) {
              yield* tx.rollback
              return yield* exit
            }
            yield* tx.commit
            yield* onCommitted(exit.value)
            return exit.value
          })
        ),
      attempt: (body) =>
        Effect.uninterruptibleMask((restore) =>
          Effect.gen(function* () {
            const tx = yield* CurrentTx
            if (tx === undefined) return yield* Effect.die("attempt outside a transaction")
            const undo = tx.savepoint()
            const exit = yield* Effect.exit(Effect.tap(restore(body), tx.checkDeferred))
            if (Exit.isFailure(exit)) undo()
            return yield* exit
          })
        )
    })
  })
)
