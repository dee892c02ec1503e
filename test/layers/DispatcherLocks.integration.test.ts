/** The dispatchers' run locks on PostgreSQL (X1, X2): one holder each over all instances, apart from each other and the reaper's. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as PgRunLock from "../../src/layers/PgRunLock.ts"
import { OutboxLock, RealtimeLock } from "../../src/services/DispatcherLocks.ts"
import { defaults, ReaperOptions } from "../../src/services/ReaperOptions.ts"
import { RunLock } from "../../src/services/RunLock.ts"
import { clientLayer, freshDatabase } from "../support/postgres.ts"

const onDatabase = Layer.unwrap(
  Effect.map(freshDatabase, ({ url, worker }) =>
    Layer.mergeAll(
      PgRunLock.layer(worker),
      PgRunLock.outboxLayer(worker),
      PgRunLock.realtimeLayer(worker),
      clientLayer(url)
    ).pipe(Layer.provide(Layer.succeed(ReaperOptions, defaults)))
  )
)

const keyOf = (name: string) => Buffer.from(name, "ascii").readBigInt64BE().toString()

describe("the dispatchers' locks on PostgreSQL", () => {
  it("have the keys that older and newer versions must share", () => {
    assert.deepStrictEqual(
      [PgRunLock.lockKey, PgRunLock.outboxLockKey, PgRunLock.realtimeLockKey],
      ["confreap", "confrout", "confrhub"].map(keyOf)
    )
  })

  it.live("are held beside each other and the reaper's, by one holder each, until the scope ends (X1, X2)", () =>
    Effect.gen(function* () {
      const locks = [yield* RunLock, yield* OutboxLock, yield* RealtimeLock]
      const tryAll = Effect.forEach(locks, (lock) => Effect.map(lock.tryAcquire, Option.isSome))
      yield* Effect.scoped(
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* tryAll, [true, true, true])
          assert.deepStrictEqual(yield* tryAll, [false, false, false])
        })
      )
      assert.deepStrictEqual(yield* Effect.scoped(tryAll), [true, true, true])
    }).pipe(Effect.provide(onDatabase), Effect.scoped)
  )

  it.live("are known to the server by their names, and lost with their connection (L3)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const held = yield* Effect.forEach([yield* OutboxLock, yield* RealtimeLock], ({ tryAcquire }) =>
        Effect.flatMap(tryAcquire, (lock) => Effect.orDie(Effect.fromOption(lock)))
      )
      yield* Effect.forEach(held, ({ confirm }) => confirm)
      const ended = yield* sql<{ name: string }>`
        select application_name as name, pg_terminate_backend(pid, 5000) from pg_stat_activity
        where datname = current_database() and application_name like 'conference-room-reaper %-lock'
        order by application_name`
      assert.deepStrictEqual(
        ended.map(({ name }) => name),
        ["conference-room-reaper outbox-lock", "conference-room-reaper realtime-lock"]
      )
      for (const { confirm } of held) assert.strictEqual((yield* Effect.flip(confirm))._tag, "LockLost")
    }).pipe(Effect.provide(onDatabase), Effect.scoped)
  )
})
