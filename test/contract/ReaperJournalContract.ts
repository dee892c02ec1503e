/** Evidence of each closing, in the closing's own transaction, and a bounded history of runs (W7). */
import { assert, type Vitest } from "@effect/vitest"
import { Effect } from "effect"
import * as Closing from "../../src/domain/Closing.ts"
import type { CycleSummary } from "../../src/domain/CycleSummary.ts"
import { emptyRoom, provisionTimeout } from "../../src/domain/Phase.ts"
import { ConferenceRepository } from "../../src/services/ConferenceRepository.ts"
import { ReaperJournal } from "../../src/services/ReaperJournal.ts"
import { conferenceId, jobRunId, microsecondsAfter } from "../support/Sessions.ts"
import { asOf, committed, due, emptyFor, endedEvent, eventOf, onEmptyTables, type Ports, scan } from "./Fixtures.ts"
import { Harness } from "./Harness.ts"

const closing = (n: number): Closing.Closing => Closing.fromEvent(endedEvent(n), jobRunId(1))

const run: CycleSummary = {
  jobRunId: jobRunId(1),
  asOf,
  outcome: "completed",
  emptyTimeoutCount: 1,
  provisionFailedCount: 2,
  staleTimeoutCount: 3,
  skippedLockedCount: 4,
  poisonCount: 5,
  durationMs: 67,
  error: null
}

export const reaperJournalContract = (it: Vitest.MethodsNonLive<Ports>): void => {
  closings(it)
  runs(it)
}

const closings = (it: Vitest.MethodsNonLive<Ports>): void => {
  it.effect("stores each closing as it is, visible only after the commit (W7)", () =>
    Effect.gen(function* () {
      const journal = yield* ReaperJournal
      const harness = yield* Harness
      const failed = Closing.fromEvent(eventOf(provisionTimeout, due(provisionTimeout, 2)), jobRunId(1))
      const during = yield* committed(Effect.andThen(journal.appendClosings([closing(1), failed]), harness.closings))
      assert.deepStrictEqual(during, [])
      assert.deepStrictEqual(yield* harness.closings, [closing(1), failed])
    }).pipe(onEmptyTables)
  )

  it.effect("keeps no evidence of a transaction that is rolled back (T1)", () =>
    Effect.gen(function* () {
      const journal = yield* ReaperJournal
      const harness = yield* Harness
      yield* Effect.flip(committed(Effect.andThen(journal.appendClosings([closing(1)]), Effect.fail("stop"))))
      assert.deepStrictEqual(yield* harness.closings, [])
    }).pipe(onEmptyTables)
  )

  it.effect("refuses a second closing of one conference (W7)", () =>
    Effect.gen(function* () {
      const journal = yield* ReaperJournal
      yield* committed(journal.appendClosings([closing(1)]))
      const again = { ...closing(1), jobRunId: jobRunId(2) }
      const error = yield* Effect.flip(committed(journal.appendClosings([again])))
      assert.isTrue(error._tag === "RowRefused" && error.code === "23505")
    }).pipe(onEmptyTables)
  )

  it.effect("reports a row that the database does not take as refused, and appends nothing for nothing (T4)", () =>
    Effect.gen(function* () {
      const journal = yield* ReaperJournal
      const harness = yield* Harness
      yield* harness.refuse("appendClosings", [conferenceId(1)])
      const error = yield* Effect.flip(committed(journal.appendClosings([closing(1)])))
      assert.isTrue(error._tag === "RowRefused" && error.code === "23514")
      yield* committed(journal.appendClosings([]))
      assert.deepStrictEqual(yield* harness.closings, [])
    }).pipe(onEmptyTables)
  )

  it.effect("prunes evidence older than the limit, to the microsecond (W7)", () =>
    Effect.gen(function* () {
      const journal = yield* ReaperJournal
      const harness = yield* Harness
      const old = { ...closing(1), asOf: microsecondsAfter(asOf, -1n) }
      yield* committed(journal.appendClosings([old, closing(2)]))
      yield* journal.prune(asOf)
      assert.deepStrictEqual(yield* harness.closings, [closing(2)])
    }).pipe(onEmptyTables)
  )

  it.effect("prunes the poison records of sessions that are closed or gone (T5)", () =>
    Effect.gen(function* () {
      const journal = yield* ReaperJournal
      const repository = yield* ConferenceRepository
      const harness = yield* Harness
      yield* harness.insertSessions([emptyFor(1, 120), { ...emptyFor(2, 120), status: "Ended" }])
      const refusals = [1, 2, 3].map((n) => ({
        conferenceId: conferenceId(n),
        attempts: 1,
        lastError: "refused",
        nextAttemptAt: asOf
      }))
      yield* committed(repository.recordPoison(scan(emptyRoom), refusals))
      yield* journal.prune(asOf)
      assert.deepStrictEqual(
        (yield* harness.poison).map((record) => record.conferenceId),
        [conferenceId(1)]
      )
    }).pipe(onEmptyTables)
  )
}

const runs = (it: Vitest.MethodsNonLive<Ports>): void => {
  it.effect("keeps a run at once, under the instance's name (M)", () =>
    Effect.gen(function* () {
      const journal = yield* ReaperJournal
      const harness = yield* Harness
      yield* journal.recordRun(run, "reaper-1")
      assert.deepStrictEqual(yield* harness.runs, [{ ...run, instance: "reaper-1" }])
      const failed: CycleSummary = { ...run, jobRunId: jobRunId(2), outcome: "failed", error: "claim: connection lost" }
      yield* journal.recordRun(failed, "reaper-2")
      assert.strictEqual((yield* harness.runs).find((row) => row.instance === "reaper-2")?.error, failed.error)
    }).pipe(onEmptyTables)
  )

  it.effect("prunes all but the newest 10 000 runs", () =>
    Effect.gen(function* () {
      const journal = yield* ReaperJournal
      const harness = yield* Harness
      yield* harness.insertRuns(10_003)
      yield* journal.prune(asOf)
      const kept = yield* harness.runs
      assert.strictEqual(kept.length, 10_000)
      assert.strictEqual(kept.at(-1)?.jobRunId, jobRunId(4))
    }).pipe(onEmptyTables)
  )
}
