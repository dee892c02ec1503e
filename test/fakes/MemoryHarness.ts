/** The harness of the contract suites on the in-memory database. */
import { Deferred, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as Instant from "../../src/domain/Instant.ts"
import { defaults } from "../../src/services/ReaperOptions.ts"
import { Harness } from "../contract/Harness.ts"
import { jobRunId, type SessionRow } from "../support/Sessions.ts"
import { MemoryDatabase, type MemoryTx } from "./MemoryDatabase.ts"
import { RunLockControl } from "./MemoryRunLock.ts"
import { asAppended, type Delivery, deliveryOf, type RunRow } from "./Tables.ts"

const byId = <R extends { readonly id: string }>(rows: ReadonlyArray<R>) =>
  rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))

const update = (tx: MemoryTx, id: SessionRow["id"], changes: Partial<SessionRow>) =>
  tx.lock("sessions", id).pipe(
    Effect.andThen(
      Effect.suspend(() => {
        const row = tx.rows("sessions").get(id)
        return row === undefined ? Effect.void : tx.put("sessions", id, { ...row, ...changes })
      })
    )
  )

const deliveries = (rows: ReadonlyArray<Delivery>) => rows.map(deliveryOf).sort((a, b) => Number(a.id - b.id))

const pastRun = (n: number): RunRow => ({
  jobRunId: jobRunId(n),
  asOf: Instant.fromMillis(n * 1000),
  outcome: "completed",
  emptyTimeoutCount: 0,
  provisionFailedCount: 0,
  staleTimeoutCount: 0,
  skippedLockedCount: 0,
  poisonCount: 0,
  durationMs: 1,
  error: null,
  instance: "past"
})

export const layer = Layer.effect(
  Harness,
  Effect.gen(function* () {
    const database = yield* MemoryDatabase
    const lock = yield* RunLockControl
    const otherSide = Effect.map(
      Effect.acquireRelease(database.begin, (tx) => tx.rollback),
      (tx) => ({
        lockRow: (id: SessionRow["id"]) => tx.lock("sessions", id),
        update: (id: SessionRow["id"], changes: Partial<SessionRow>) => update(tx, id, changes),
        commit: tx.end,
        rollback: tx.rollback
      })
    )

    return Harness.of({
      reset: Effect.andThen(database.truncate, database.faults.clear),
      insertSessions: (rows) =>
        database.seed(
          "sessions",
          rows.map((row) => [row.id, row] as const)
        ),
      insertParticipants: (rows) =>
        database.seed(
          "participants",
          rows.map((row) => [database.nextId(), row] as const)
        ),
      insertRecordings: (rows) =>
        database.seed(
          "recordings",
          rows.map((row) => [row.id, row] as const)
        ),
      insertRuns: (count) =>
        database.seed(
          "runs",
          Array.from({ length: count }, (_, i) => [jobRunId(i + 1), pastRun(i + 1)] as const)
        ),
      updateSession: (id, changes) =>
        Effect.acquireUseRelease(
          database.begin,
          (tx) => Effect.andThen(update(tx, id, changes), tx.end),
          (tx) => tx.rollback
        ),
      otherSide,
      holdCommit: Effect.gen(function* () {
        const reached = yield* Deferred.make<void>()
        const released = yield* Deferred.make<void>()
        const hold = Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(released))
        yield* database.faults.before("commit", hold)
        return { reached: Deferred.await(reached), release: Effect.asVoid(Deferred.succeed(released, undefined)) }
      }),
      lockWaitSeen: database.lockWaitSeen,
      passLockTtl: TestClock.adjust(defaults.lockTtl),
      refuse: (point, ids) => database.faults.refuse(point, ids),
      sessions: Effect.map(database.committed("sessions"), byId),
      participants: database.committed("participants"),
      recordings: Effect.map(database.committed("recordings"), byId),
      outbox: Effect.map(database.committed("outbox"), (rows) =>
        rows.map(({ conferenceId: _, ...row }) => asAppended(row))
      ),
      realtime: Effect.map(database.committed("realtime"), (rows) => rows.map(asAppended)),
      eventDelivery: Effect.map(database.committed("outbox"), deliveries),
      signalDelivery: Effect.map(database.committed("realtime"), deliveries),
      closings: database.committed("closings"),
      poison: Effect.map(database.committed("poison"), (rows) => rows.map(({ seen: _, ...row }) => row)),
      runs: Effect.map(database.committed("runs"), (rows) => rows.toSorted((a, b) => Number(b.asOf - a.asOf))),
      databaseTime: lock.databaseTime,
      killConnections: database.killConnections
    })
  })
)
