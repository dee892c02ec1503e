/** Rows that PostgreSQL refuses in ways that do not speak of rows: by any SQLSTATE, or without an error at all (T4, T5). */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { ConferenceId } from "../../src/domain/ConferenceSession.ts"
import * as Cycle from "../../src/program/Cycle.ts"
import { ReaperOptions } from "../../src/services/ReaperOptions.ts"
import { fromTheStart, options, program } from "../contract/CycleFixtures.ts"
import { Harness } from "../contract/Harness.ts"
import * as PgProgram from "../contract/PgProgram.ts"
import { start } from "../fakes/ManualCycleClock.ts"
import { before, conferenceId, emptySession } from "../support/Sessions.ts"

const insertDue = (numbers: ReadonlyArray<number>, seconds: number) =>
  Effect.flatMap(Harness, (harness) =>
    harness.insertSessions(numbers.map((n) => emptySession(n, before(start, `${seconds} seconds`))))
  )

/** Before the update of one of these sessions, until the scope ends. */
const onUpdateOf = (ids: ReadonlyArray<ConferenceId>, then: string) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* sql.unsafe(`create function test_fault() returns trigger language plpgsql as $$
        begin if new.id in (${ids.map((id) => `'${id}'`)}) then ${then} end if; return new; end $$`)
      yield* sql.unsafe(`create trigger test_fault before update on messenger.conference_sessions
        for each row execute function test_fault()`)
    }).pipe(Effect.orDie),
    () => Effect.flatMap(SqlClient, (sql) => Effect.orDie(sql`drop function test_fault cascade`))
  )

const counts = (summary: Effect.Success<typeof Cycle.run>) => [
  summary.outcome,
  summary.emptyTimeoutCount,
  summary.poisonCount
]

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

layer(program(PgProgram.ports), { excludeTestServices: true })("Refused rows on PostgreSQL", (it) => {
  it.effect("finds rows whose update a trigger suppresses, and closes the healthy ones behind them (T4, T5)", () =>
    Effect.gen(function* () {
      yield* insertDue(range(1, 15), 3000)
      yield* insertDue(range(16, 35), 1000)
      yield* onUpdateOf(range(1, 15).map(conferenceId), "return null;")
      const first = yield* Cycle.run
      assert.deepStrictEqual(counts(first), ["completed", 10, 15])
      assert.deepStrictEqual(counts(yield* Cycle.run), ["completed", 10, 0])
      const poison = yield* Effect.flatMap(Harness, (harness) => harness.poison)
      assert.include(poison[0]?.lastError ?? "", "without effect")
    }).pipe(Effect.scoped, Effect.provideService(ReaperOptions, { ...options, batchSize: 10 }), fromTheStart)
  )

  const codes = ["42501", "55000", "0A000", "42P01", "25006", "XX001", "ZZ123"]
  for (const code of codes) {
    it.effect(`takes one row of five that is refused with SQLSTATE ${code} for poison (T4)`, () =>
      Effect.gen(function* () {
        yield* insertDue(range(1, 5), 1000)
        yield* onUpdateOf([conferenceId(2)], `raise exception 'not this one' using errcode = '${code}';`)
        assert.deepStrictEqual(counts(yield* Cycle.run), ["completed", 4, 1])
        // Alone it does not turn into an infrastructure failure later on.
        assert.deepStrictEqual(counts(yield* Cycle.run), ["completed", 0, 1])
      }).pipe(Effect.scoped, fromTheStart)
    )
  }

  it.effect("takes it for an infrastructure failure when all rows are refused with such a code (T6)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* insertDue(range(1, 5), 1000)
      yield* onUpdateOf(range(1, 5).map(conferenceId), "raise exception 'no right' using errcode = '42501';")
      const summary = yield* Cycle.run
      assert.deepStrictEqual(counts(summary), ["failed", 0, 0])
      assert.include(summary.error ?? "", "no right")
      assert.deepStrictEqual(yield* harness.poison, [])
    }).pipe(Effect.scoped, fromTheStart)
  )

  it.effect("counts no session as locked that the batch had no room for, however equal their times (M)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* insertDue(range(1, 25), 1000)
      const other = yield* harness.otherSide
      yield* other.lockRow(conferenceId(3))
      const summary = yield* Cycle.run
      assert.deepStrictEqual([summary.emptyTimeoutCount, summary.skippedLockedCount], [10, 1])
    }).pipe(Effect.scoped, Effect.provideService(ReaperOptions, { ...options, batchSize: 10 }), fromTheStart)
  )
})
