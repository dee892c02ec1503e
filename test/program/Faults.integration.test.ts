/** Failures as PostgreSQL really has them: locked tables, killed backends, time limits, a commit that fails (T6, L4). */
import { assert, layer, type Vitest } from "@effect/vitest"
import { Duration, Effect, type Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as Cycle from "../../src/program/Cycle.ts"
import { IntegrationOutbox } from "../../src/services/IntegrationOutbox.ts"
import { ReaperOptions } from "../../src/services/ReaperOptions.ts"
import { options, program } from "../contract/CycleFixtures.ts"
import { closedPhases, fromDueRooms, names } from "../contract/FaultFixtures.ts"
import { Harness } from "../contract/Harness.ts"
import { observed } from "../contract/Observed.ts"
import * as PgProgram from "../contract/PgProgram.ts"
import { start } from "../fakes/ManualCycleClock.ts"
import { before, conferenceId, emptySession } from "../support/Sessions.ts"

// One second of patience for a lock, which is a sixth of it.
const brief = { ...options, maxRunDuration: Duration.seconds(6) }
const briefly = Effect.provideService(ReaperOptions, brief)

type Pg = Layer.Success<ReturnType<typeof program<Layer.Success<typeof PgProgram.ports>, never>>>
type It = Vitest.MethodsNonLive<Pg>

layer(program(PgProgram.portsWith(brief)), { excludeTestServices: true })("Failures on PostgreSQL", (it) => {
  lockedTables(it)
  lostBackends(it)
  commits(it)
})

/** Holds a table in exclusive mode until the scope ends. */
const lockTable = (table: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const connection = yield* sql.reserve
    const run = (statement: string) => Effect.orDie(connection.executeUnprepared(statement, [], undefined))
    yield* Effect.acquireRelease(run("begin"), () => run("rollback"))
    yield* run(`lock table messenger.${table} in access exclusive mode`)
  })

/** A trigger that runs plpgsql until the scope ends. */
const trigger = (kind: string, timing: string, table: string, body: string) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* sql.unsafe(`create function test_fault() returns trigger language plpgsql as $$ begin ${body} end $$`)
      yield* sql.unsafe(
        `create ${kind} test_fault ${timing} on messenger.${table}
         ${kind === "trigger" ? "" : "deferrable initially deferred"} for each row execute function test_fault()`
      )
    }).pipe(Effect.orDie),
    () => Effect.flatMap(SqlClient, (sql) => Effect.orDie(sql`drop function test_fault cascade`))
  )

/** Before the session of this number is written. */
const onUpdate = (n: number, body: string) =>
  trigger(
    "trigger",
    "before update",
    "conference_sessions",
    `if new.id = '${conferenceId(n)}' then ${body} end if; return new;`
  )

/** At the commit of a batch that refused a session. */
const onPoisonCommit = (body: string) =>
  trigger("constraint trigger", "after insert", "conference_reaper_poison", `${body} return null;`)

const lockedTables = (it: It): void => {
  it.effect("closes failed provisions while the recordings are locked, the rest in the next cycle (T6)", () =>
    Effect.gen(function* () {
      const cycle = yield* lockTable("call_recordings").pipe(Effect.andThen(observed(Cycle.run)), Effect.scoped)
      assert.deepStrictEqual(yield* closedPhases, ["provision-timeout"])
      assert.deepStrictEqual([cycle.result.outcome, cycle.moved("errors_total")], ["failed", 2])
      assert.match(cycle.result.error ?? "", /empty-room: details.*55P03.*; stale-live: details.*55P03/)
      assert.strictEqual((yield* Cycle.run).outcome, "completed")
      assert.deepStrictEqual(yield* closedPhases, names)
    }).pipe(briefly, fromDueRooms)
  )

  it.effect("closes failed provisions while the outbox is locked, the rest in the next cycle (T6)", () =>
    Effect.gen(function* () {
      const cycle = yield* lockTable("outbox_messages").pipe(Effect.andThen(observed(Cycle.run)), Effect.scoped)
      assert.deepStrictEqual(yield* closedPhases, ["provision-timeout"])
      assert.deepStrictEqual(
        ["empty-room", "stale-live"].map((name) => cycle.moved(`phase_errors_total{phase="${name}"}`)),
        [1, 1]
      )
      assert.strictEqual((yield* Cycle.run).outcome, "completed")
      assert.deepStrictEqual(yield* closedPhases, names)
    }).pipe(briefly, fromDueRooms)
  )

  it.effect("closes failed provisions while the recordings cannot be read at all (T6)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* sql`alter table messenger.call_recordings rename to hidden`
      const cycle = yield* observed(Cycle.run)
      yield* sql`alter table messenger.hidden rename to call_recordings`
      assert.deepStrictEqual(yield* closedPhases, ["provision-timeout"])
      assert.match(cycle.result.error ?? "", /details.*42P01/)
      assert.strictEqual((yield* Cycle.run).outcome, "completed")
      assert.deepStrictEqual(yield* closedPhases, names)
    }).pipe(briefly, fromDueRooms)
  )

  it.effect("cancels a statement that hangs, in time for the other phases, and leaves nothing behind (L4, T6)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const cycle = yield* onUpdate(1, "perform pg_sleep(60);").pipe(
        Effect.andThen(observed(Cycle.run)),
        Effect.scoped,
        Effect.timed
      )
      const [took, { result }] = cycle
      assert.isBelow(Duration.toSeconds(took), 9)
      assert.strictEqual(result.outcome, "failed")
      assert.include(result.error ?? "", "statement timeout")
      assert.deepStrictEqual(yield* closedPhases, names.slice(1))
      const busy = yield* sql`select query from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and state in ('active', 'idle in transaction')`
      assert.deepStrictEqual(busy, [])
      assert.strictEqual((yield* Cycle.run).outcome, "completed")
      assert.deepStrictEqual(yield* closedPhases, names)
    }).pipe(briefly, fromDueRooms)
  )
}

const killSelf = "perform pg_terminate_backend(pg_backend_pid());"

const lostBackends = (it: It): void => {
  for (const [index, name] of names.entries()) {
    it.effect(`rolls ${name} back alone when its backend is killed in mid-statement (T6)`, () =>
      Effect.gen(function* () {
        const cycle = yield* onUpdate(index + 1, killSelf).pipe(Effect.andThen(observed(Cycle.run)), Effect.scoped)
        assert.deepStrictEqual(
          yield* closedPhases,
          names.filter((other) => other !== name)
        )
        assert.deepStrictEqual([cycle.result.outcome, cycle.moved("errors_total")], ["failed", 1])
        assert.strictEqual((yield* Cycle.run).outcome, "completed")
        assert.deepStrictEqual(yield* closedPhases, names)
      }).pipe(briefly, fromDueRooms)
    )
  }

  it.effect(
    "counts one error when all connections die in mid-batch, the lock's too, and goes on at the next tick (T6)",
    () =>
      Effect.gen(function* () {
        const harness = yield* Harness
        const sql = yield* SqlClient
        const outbox = yield* IntegrationOutbox
        const dying = Effect.provideService(IntegrationOutbox, {
          ...outbox,
          append: (messages) => Effect.andThen(harness.killConnections, outbox.append(messages))
        })
        const cycle = yield* observed(dying(Cycle.run))
        assert.deepStrictEqual([cycle.result.outcome, cycle.moved("errors_total")], ["failed", 1])
        assert.deepStrictEqual(yield* closedPhases, [])
        assert.strictEqual((yield* Cycle.run).outcome, "completed")
        assert.deepStrictEqual(yield* closedPhases, names)
        const locks = yield* sql`select from pg_locks where locktype = 'advisory'
        and database = (select oid from pg_database where datname = current_database())`
        assert.deepStrictEqual(locks, [])
      }).pipe(briefly, fromDueRooms)
  )
}

const commits = (it: It): void => {
  for (const [how, body] of [
    ["is refused", "raise exception 'no commit today' using errcode = '23514';"],
    ["meets a killed backend", killSelf]
  ] as const) {
    it.effect(`tells nobody of a batch whose commit ${how} (T6, R10)`, () =>
      Effect.gen(function* () {
        const harness = yield* Harness
        // A refused session's record is what makes this commit fail.
        yield* harness.insertSessions([emptySession(4, before(start, "2 minutes"), { startedAt: null })])
        const cycle = yield* onPoisonCommit(body).pipe(Effect.andThen(observed(Cycle.run)), Effect.scoped)
        assert.deepStrictEqual(yield* closedPhases, ["provision-timeout", "stale-live"])
        assert.deepStrictEqual([cycle.result.outcome, cycle.moved("errors_total")], ["failed", 1])
        assert.deepStrictEqual([cycle.result.emptyTimeoutCount, cycle.result.poisonCount], [0, 0])
        assert.strictEqual(cycle.moved('items_total{outcome="empty_timeout"}'), 0)
        assert.strictEqual(cycle.saying("conference reaped").length, 2)
        assert.deepStrictEqual(yield* harness.poison, [])
        assert.strictEqual((yield* Cycle.run).emptyTimeoutCount, 1)
        assert.deepStrictEqual(yield* closedPhases, names)
      }).pipe(briefly, fromDueRooms)
    )
  }

  it.effect("runs one of two cycles that start at once, every time, and leaves no lock (L2)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const sql = yield* SqlClient
      for (let round = 0; round < 20; round++) {
        const both = yield* Effect.all([Cycle.run, Cycle.run], { concurrency: 2 })
        for (const { outcome } of both) assert.include(["completed", "lock-busy"], outcome)
        assert.include(
          both.map(({ outcome }) => outcome),
          "completed"
        )
      }
      const locks = yield* sql`select from pg_locks where locktype = 'advisory'
        and database = (select oid from pg_database where datname = current_database())`
      assert.deepStrictEqual(locks, [])
      assert.strictEqual((yield* harness.outbox).length, 2)
    }).pipe(briefly, fromDueRooms)
  )
}
