/**
 * PostgreSQL as far as the worker leans on it: read-committed transactions whose writes nobody else sees before the
 * commit, savepoints, row locks held to the end of the transaction, unique keys, and a transaction that is of no more
 * use after a failed statement. Everything lives in one process; time is the Clock's.
 */
import { Context, Effect, Layer } from "effect"
import { RowRefused, type StoreUnavailable } from "../../src/services/StoreError.ts"
import { type Faults, makeFaults, type Operation, unavailable } from "./Faults.ts"
import { type Locks, makeLocks } from "./Locks.ts"
import * as Tables from "./Tables.ts"

/** One open transaction. */
export interface MemoryTx {
  /** What this transaction sees: committed rows and its own writes. */
  readonly rows: <N extends Tables.TableName>(table: N) => ReadonlyMap<string, Tables.Rows[N]>
  /** Takes the row lock if nobody else has it. */
  readonly tryLock: (table: Tables.TableName, key: string) => boolean
  readonly isLockedByOther: (table: Tables.TableName, key: string) => boolean
  /** Takes the row lock, waiting for the end of the transaction that has it. */
  readonly lock: (table: Tables.TableName, key: string) => Effect.Effect<void>
  /** Writes under the row lock; undefined removes. */
  readonly put: <N extends Tables.TableName>(
    table: N,
    key: string,
    row: Tables.Rows[N] | undefined
  ) => Effect.Effect<void>
  /** Writes a new row; a key that is there is refused with 23505. */
  readonly insert: <N extends Tables.TableName>(
    table: N,
    key: string,
    row: Tables.Rows[N]
  ) => Effect.Effect<void, RowRefused>
  /** Runs one named statement: planned faults first; after a failure only a savepoint brings the transaction back. */
  readonly statement: <A, E>(operation: Operation, body: Effect.Effect<A, E>) => Effect.Effect<A, E | StoreUnavailable>
  /** Remembers the writes so far and gives back what undoes the later ones. Locks stay. */
  readonly savepoint: () => () => void
  /** Fails for a written session that a deferred constraint refuses. */
  readonly checkDeferred: Effect.Effect<void, RowRefused>
  readonly commit: Effect.Effect<void, StoreUnavailable>
  /** The commit of a statement that is a transaction of its own: none of its faults. */
  readonly end: Effect.Effect<void>
  readonly rollback: Effect.Effect<void>
  /** The connection dies: writes and locks are gone, the next statement fails. */
  readonly kill: () => void
}

export interface Database {
  readonly faults: Faults
  readonly begin: Effect.Effect<MemoryTx>
  /** What a new reader sees. */
  readonly committed: <N extends Tables.TableName>(table: N) => Effect.Effect<ReadonlyArray<Tables.Rows[N]>>
  /** Changes committed rows at once, without locks: the state before the story begins. */
  readonly seed: <N extends Tables.TableName>(
    table: N,
    entries: Iterable<readonly [string, Tables.Rows[N]]>
  ) => Effect.Effect<void>
  /** One after another, also across roll-backs, as an identity column. */
  readonly nextId: () => string
  /** Waits until some transaction waits for a row lock. */
  readonly lockWaitSeen: Effect.Effect<void>
  readonly truncate: Effect.Effect<void>
  /** Every connection dies, as with a restart of the server. */
  readonly killConnections: Effect.Effect<void>
  /** Runs at `killConnections`, for what hangs on a connection beside transactions. */
  readonly onKill: (action: () => void) => void
}

export class MemoryDatabase extends Context.Service<MemoryDatabase, Database>()("test/MemoryDatabase") {}

const makeTx = (committed: Tables.Committed, locks: Locks, faults: Faults, end: (tx: MemoryTx) => void): MemoryTx => {
  const owner = locks.newOwner()
  let overlay = Tables.noWrites()
  let state: "open" | "aborted" | "ended" | "lost" = "open"

  const finish = (next: "ended" | "lost") => {
    state = next
    locks.release(owner)
    end(tx)
  }
  const refuseWhenUnusable = (operation: Operation) =>
    Effect.suspend(() => {
      if (state === "open") return Effect.void
      const reason = state === "aborted" ? "current transaction is aborted (SQLSTATE 25P02)" : undefined
      return Effect.fail(unavailable(operation, reason))
    })
  const lockName = (table: Tables.TableName, key: string) => `${table}/${key}`

  const tx: MemoryTx = {
    rows: (table) => Tables.view(committed, overlay, table),
    tryLock: (table, key) => locks.tryTake(owner, lockName(table, key)),
    isLockedByOther: (table, key) => locks.isTakenByOther(owner, lockName(table, key)),
    lock: (table, key) => locks.take(owner, lockName(table, key)),
    put: (table, key, row) =>
      Effect.andThen(
        tx.lock(table, key),
        Effect.sync(() => {
          const writes: Map<string, Tables.Rows[typeof table] | undefined> = overlay[table]
          writes.set(key, row)
        })
      ),
    insert: (table, key, row) =>
      Effect.andThen(
        tx.lock(table, key),
        Effect.suspend(() =>
          tx.rows(table).has(key)
            ? Effect.fail(
                new RowRefused({ code: "23505", reason: `duplicate key ${key} in ${table}`, isCertain: true })
              )
            : tx.put(table, key, row)
        )
      ),
    statement: (operation, body) =>
      refuseWhenUnusable(operation).pipe(
        Effect.andThen(faults.hit(operation)),
        Effect.andThen(refuseWhenUnusable(operation)),
        Effect.andThen(body),
        Effect.onError(() =>
          Effect.sync(() => {
            if (state === "open") state = "aborted"
          })
        )
      ),
    savepoint: () => {
      const saved = Tables.copy(overlay)
      const savedState = state
      return () => {
        overlay = saved
        if (state === "aborted") state = savedState
      }
    },
    checkDeferred: Effect.suspend(() => faults.check("deferred", [...overlay.sessions.values()].flatMap(idOf))),
    commit: Effect.gen(function* () {
      yield* tx.statement(
        "commit",
        Effect.mapError(tx.checkDeferred, (e) => unavailable("commit", e.message))
      )
      yield* tx.end
      yield* faults.hit("commitAnswer")
    }).pipe(Effect.onError(() => tx.rollback)),
    end: Effect.sync(() => {
      Tables.merge(committed, overlay)
      finish("ended")
    }),
    rollback: Effect.sync(() => {
      if (state !== "ended") finish("ended")
    }),
    kill: () => finish("lost")
  }
  return tx
}

const idOf = (row: Tables.Rows["sessions"] | undefined) => (row === undefined ? [] : [row.id])

const make = Effect.sync((): Database => {
  const committed = Tables.empty()
  const locks = makeLocks()
  const faults = makeFaults()
  const open = new Set<MemoryTx>()
  const killActions: Array<() => void> = []
  let lastId = 0

  return {
    faults,
    begin: Effect.sync(() => {
      const tx = makeTx(committed, locks, faults, (ended) => open.delete(ended))
      open.add(tx)
      return tx
    }),
    committed: (table) => Effect.sync(() => [...Tables.view(committed, Tables.noWrites(), table).values()]),
    seed: (table, entries) =>
      Effect.sync(() => {
        const rows: Map<string, Tables.Rows[typeof table]> = committed[table]
        for (const [key, row] of entries) rows.set(key, row)
      }),
    nextId: () => String(++lastId),
    lockWaitSeen: locks.waitSeen,
    truncate: Effect.sync(() => Tables.truncate(committed)),
    killConnections: Effect.sync(() => {
      for (const tx of open) tx.kill()
      for (const action of killActions) action()
    }),
    onKill: (action) => {
      killActions.push(action)
    }
  }
})

export const layer = Layer.effect(MemoryDatabase, make)
