/** The counts behind the metrics (M): rows that others had locked, and the backlog. */
import { assert, type Vitest } from "@effect/vitest"
import { Effect } from "effect"
import * as Phase from "../../src/domain/Phase.ts"
import { ConferenceRepository } from "../../src/services/ConferenceRepository.ts"
import { activeSession, before, conferenceId, emptySession, microsecondsAfter } from "../support/Sessions.ts"
import { asOf, committed, due, emptyFor, onEmptyTables, type Ports, scan, windows } from "./Fixtures.ts"
import { Harness } from "./Harness.ts"

/** Claims and counts in one transaction, as a batch does, while others hold the rows `locked`. */
const skipped = (limit: number, locked: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const repository = yield* ConferenceRepository
    const harness = yield* Harness
    const others = yield* harness.otherSide
    for (const n of locked) yield* others.lockRow(conferenceId(n))
    const of = scan(Phase.emptyRoom)
    return yield* committed(
      Effect.gen(function* () {
        const claimed = yield* repository.claim(of, limit, [])
        const ids = claimed.map((row) => row.id)
        return yield* repository.countSkippedLocked(of, ids, ids.length === limit)
      })
    )
  }).pipe(Effect.scoped)

const insert = (...rows: Parameters<Harness["Service"]["insertSessions"]>[0]) =>
  Effect.flatMap(Harness, (harness) => harness.insertSessions(rows))

const refused = { conferenceId: conferenceId(1), attempts: 1, lastError: "refused" }

export const countsContract = (it: Vitest.MethodsNonLive<Ports>): void => {
  skippedLocked(it)
  backlog(it)
}

const skippedLocked = (it: Vitest.MethodsNonLive<Ports>): void => {
  it.effect("counts every locked due session when the batch is not full (M)", () =>
    Effect.gen(function* () {
      yield* insert(emptyFor(1, 400), emptyFor(2, 300), emptyFor(3, 200), due(Phase.staleLive, 4), emptyFor(5, 10))
      assert.strictEqual(yield* skipped(10, [1, 3, 4, 5]), 2)
      assert.strictEqual(yield* skipped(10, []), 0)
    }).pipe(onEmptyTables)
  )

  it.effect("counts also when nothing was claimed (M)", () =>
    Effect.gen(function* () {
      yield* insert(emptyFor(1, 400), emptyFor(2, 300))
      assert.strictEqual(yield* skipped(10, [1, 2]), 2)
    }).pipe(onEmptyTables)
  )

  it.effect("counts with a full batch only those up to the last claimed, level with it included (M)", () =>
    Effect.gen(function* () {
      yield* insert(emptyFor(1, 400), emptyFor(2, 300), emptyFor(3, 300), emptyFor(4, 200), emptyFor(5, 100))
      assert.strictEqual(yield* skipped(1, [1, 3, 4]), 2)
    }).pipe(onEmptyTables)
  )

  it.effect("does not count sessions behind a full batch that nobody has locked (M)", () =>
    Effect.gen(function* () {
      yield* insert(emptyFor(1, 400), emptyFor(2, 300), emptyFor(3, 200))
      assert.strictEqual(yield* skipped(2, []), 0)
    }).pipe(onEmptyTables)
  )

  it.effect("does not count a session that its poison record holds back (T5)", () =>
    Effect.gen(function* () {
      const repository = yield* ConferenceRepository
      yield* insert(emptyFor(1, 400), emptyFor(2, 300))
      const held = { ...refused, nextAttemptAt: microsecondsAfter(asOf, 1n) }
      yield* committed(repository.recordPoison(scan(Phase.emptyRoom), [held]))
      assert.strictEqual(yield* skipped(10, []), 0)
    }).pipe(onEmptyTables)
  )

  it.effect("counts a locked poison session that is due only where the batch had room for it (T5, M)", () =>
    Effect.gen(function* () {
      const repository = yield* ConferenceRepository
      yield* insert(emptyFor(1, 400), emptyFor(2, 300))
      yield* committed(repository.recordPoison(scan(Phase.emptyRoom), [{ ...refused, nextAttemptAt: asOf }]))
      assert.strictEqual(yield* skipped(1, [1]), 0)
      assert.strictEqual(yield* skipped(2, [1]), 1)
    }).pipe(onEmptyTables)
  )

  it.effect("does not take an old poison session for locked when a full batch did not come to it (T5)", () =>
    Effect.gen(function* () {
      const repository = yield* ConferenceRepository
      yield* insert(emptyFor(1, 400), emptyFor(2, 300))
      yield* committed(repository.recordPoison(scan(Phase.emptyRoom), [{ ...refused, nextAttemptAt: asOf }]))
      assert.strictEqual(yield* skipped(1, []), 0)
    }).pipe(onEmptyTables)
  )
}

const backlog = (it: Vitest.MethodsNonLive<Ports>): void => {
  it.effect("counts each overdue room once, at equality too, and no terminal one (S3)", () =>
    Effect.gen(function* () {
      const repository = yield* ConferenceRepository
      yield* insert(
        due(Phase.emptyRoom, 1),
        due(Phase.staleLive, 2),
        due(Phase.provisionTimeout, 3),
        emptySession(4, before(asOf, "10 hours")),
        emptySession(5, microsecondsAfter(scan(Phase.emptyRoom).cutoff, 1n)),
        activeSession(6, microsecondsAfter(scan(Phase.staleLive).cutoff, 1n)),
        { ...due(Phase.staleLive, 7), status: "Ended" }
      )
      assert.deepStrictEqual(yield* repository.backlog(asOf, windows), { overdue: 4, poison: 0 })
    }).pipe(onEmptyTables)
  )

  it.effect("counts the open sessions that have a poison record, each once (T5)", () =>
    Effect.gen(function* () {
      const repository = yield* ConferenceRepository
      const harness = yield* Harness
      yield* insert({ ...due(Phase.staleLive, 1), activeParticipantCount: 0 }, emptyFor(2, 10))
      const refusals = [
        { ...refused, nextAttemptAt: asOf },
        { ...refused, conferenceId: conferenceId(2), nextAttemptAt: asOf }
      ]
      yield* committed(
        Effect.andThen(
          repository.recordPoison(scan(Phase.emptyRoom), refusals),
          repository.recordPoison(scan(Phase.staleLive), refusals.slice(0, 1))
        )
      )
      assert.deepStrictEqual(yield* repository.backlog(asOf, windows), { overdue: 1, poison: 2 })
      yield* harness.updateSession(conferenceId(2), { status: "Ended" })
      assert.deepStrictEqual(yield* repository.backlog(asOf, windows), { overdue: 1, poison: 1 })
    }).pipe(onEmptyTables)
  )
}
