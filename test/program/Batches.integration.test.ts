/** Batches on PostgreSQL: their size under any plan, their borders within one millisecond, interruption (T1, T2, R6, L5). */
import { assert, layer, type Vitest } from "@effect/vitest"
import { Deferred, Effect, Fiber, type Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as Cycle from "../../src/program/Cycle.ts"
import { IntegrationOutbox } from "../../src/services/IntegrationOutbox.ts"
import { RealtimeOutbox } from "../../src/services/RealtimeOutbox.ts"
import { ReaperJournal } from "../../src/services/ReaperJournal.ts"
import { fromTheStart, options, program } from "../contract/CycleFixtures.ts"
import { closedPhases, fromDueRooms, names } from "../contract/FaultFixtures.ts"
import { Harness } from "../contract/Harness.ts"
import * as PgProgram from "../contract/PgProgram.ts"
import { start, Timeline } from "../fakes/ManualCycleClock.ts"
import { activeSession, before, emptySession, microsecondsAfter } from "../support/Sessions.ts"

type Pg = Layer.Success<ReturnType<typeof program<Layer.Success<typeof PgProgram.ports>, never>>>
type It = Vitest.MethodsNonLive<Pg>

layer(program(PgProgram.ports), { excludeTestServices: true })("Batches on PostgreSQL", (it) => {
  sizes(it)
  interruptions(it)
})

const range = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

/** Rows that each kind has after a cycle. */
const rows = Effect.gen(function* () {
  const harness = yield* Harness
  const ended = (yield* harness.sessions).filter((row) => row.endedAt !== null)
  return [
    ended.length,
    (yield* harness.outbox).length,
    (yield* harness.realtime).length,
    (yield* harness.closings).length
  ]
})

const planner = (setting: "off" | "on") =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.andThen(
      sql.unsafe(`do $$ begin
        execute format('alter database %I set enable_hashjoin = ${setting}', current_database());
        execute format('alter database %I set enable_mergejoin = ${setting}', current_database());
      end $$`),
      // Settings of a database count from the next connection on.
      Effect.flatMap(Harness, (harness) => harness.killConnections)
    )
  ).pipe(Effect.orDie)

const sizes = (it: It): void => {
  it.effect("changes no more than BatchSize sessions a phase, whatever join the planner takes (R6, T1)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions(range(1000).map((n) => emptySession(n, before(start, "1 hour"))))
      yield* harness.insertSessions(range(1000).map((n) => activeSession(2000 + n, before(start, "9 hours"))))
      yield* Effect.acquireRelease(planner("off"), () => planner("on"))
      for (const n of range(3)) {
        const summary = yield* Cycle.run
        assert.deepStrictEqual([summary.emptyTimeoutCount, summary.staleTimeoutCount], [100, 100])
        assert.deepStrictEqual(yield* rows, [200 * n, 200 * n, 200 * n, 200 * n])
      }
    }).pipe(Effect.scoped, fromTheStart)
  )

  it.effect("closes 300 sessions of one millisecond over three batches, each once (R6)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const timeline = yield* Timeline
      const level = before(start, options.emptyRoomGrace)
      yield* harness.insertSessions(range(300).map((n) => emptySession(n, microsecondsAfter(level, BigInt(n - 301)))))
      yield* harness.insertSessions([emptySession(301, microsecondsAfter(level, 1n))])
      for (const n of range(3)) {
        assert.strictEqual((yield* Cycle.run).emptyTimeoutCount, 100)
        assert.deepStrictEqual(yield* rows, [100 * n, 100 * n, 100 * n, 100 * n])
      }
      assert.strictEqual((yield* Cycle.run).emptyTimeoutCount, 0)
      yield* timeline.advance("1 milli")
      assert.strictEqual((yield* Cycle.run).emptyTimeoutCount, 1)
    }).pipe(fromTheStart)
  )
}

const interruptions = (it: It): void => {
  it.effect("frees run lock and row locks at once when it is interrupted at any write, again and again (L5)", () =>
    Effect.gen(function* () {
      const outbox = yield* IntegrationOutbox
      const realtime = yield* RealtimeOutbox
      const journal = yield* ReaperJournal
      for (const port of ["outbox", "realtime", "closings"]) {
        for (const _ of range(10)) {
          const reached = yield* Deferred.make<void>()
          const stop = Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)
          const fiber = yield* Cycle.run.pipe(
            Effect.provideService(IntegrationOutbox, port === "outbox" ? { ...outbox, append: () => stop } : outbox),
            Effect.provideService(RealtimeOutbox, port === "realtime" ? { ...realtime, append: () => stop } : realtime),
            Effect.provideService(
              ReaperJournal,
              port === "closings" ? { ...journal, appendClosings: () => stop } : journal
            ),
            Effect.forkChild
          )
          yield* Deferred.await(reached)
          yield* Fiber.interrupt(fiber)
          assert.deepStrictEqual(yield* closedPhases, [])
          assert.isTrue(yield* lockIsFree)
        }
      }
      assert.strictEqual((yield* Cycle.run).outcome, "completed")
      assert.deepStrictEqual(yield* closedPhases, names)
    }).pipe(fromDueRooms)
  )
}

const lockIsFree = Effect.flatMap(SqlClient, (sql) =>
  sql<{ free: boolean }>`select not exists (select from pg_locks where locktype = 'advisory'
    and database = (select oid from pg_database where datname = current_database())) as free`.pipe(
    Effect.map(([row]) => row?.free === true)
  )
)
