/** Poison records (T5), and the count of rows that others had locked (M). */
import { assert, type Vitest } from "@effect/vitest"
import { Duration, Effect } from "effect"
import type { ConferenceId } from "../../src/domain/ConferenceSession.ts"
import * as Instant from "../../src/domain/Instant.ts"
import * as Phase from "../../src/domain/Phase.ts"
import type { Refusal } from "../../src/domain/Poison.ts"
import { ConferenceRepository, type Scan } from "../../src/services/ConferenceRepository.ts"
import { conferenceId, microsecondsAfter } from "../support/Sessions.ts"
import { asOf, claimIds, committed, due, emptyFor, eventOf, onEmptyTables, type Ports, scan } from "./Fixtures.ts"
import { Harness } from "./Harness.ts"

const ids = (...numbers: ReadonlyArray<number>): ReadonlyArray<ConferenceId> => numbers.map(conferenceId)
const later = microsecondsAfter(asOf, 1n)

const refusal = (n: number, nextAttemptAt: Instant.Instant, attempts = 1): Refusal => ({
  conferenceId: conferenceId(n),
  attempts,
  lastError: `refused ${attempts}`,
  nextAttemptAt
})

const record = (of: Scan, ...refusals: ReadonlyArray<Refusal>) =>
  committed(Effect.flatMap(ConferenceRepository, (repository) => repository.recordPoison(of, refusals)))

const insert = (...rows: Parameters<Harness["Service"]["insertSessions"]>[0]) =>
  Effect.flatMap(Harness, (harness) => harness.insertSessions(rows))

const claim = committed(claimIds(Phase.emptyRoom))

export const poisonContract = (it: Vitest.MethodsNonLive<Ports>): void => {
  records(it)
  claims(it)
}

const records = (it: Vitest.MethodsNonLive<Ports>): void => {
  it.effect("keeps the first failure's time when a record is renewed (T5)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* insert(emptyFor(1, 120))
      const first = scan(Phase.emptyRoom)
      const second: Scan = { ...first, asOf: Instant.plus(asOf, Duration.seconds(30)) }
      yield* record(first, refusal(1, asOf))
      yield* record(second, refusal(1, later, 2))
      assert.deepStrictEqual(yield* harness.poison, [
        {
          conferenceId: conferenceId(1),
          phase: "empty-room",
          attempts: 2,
          lastError: "refused 2",
          firstFailedAt: asOf,
          lastFailedAt: second.asOf,
          nextAttemptAt: later
        }
      ])
    }).pipe(onEmptyTables)
  )

  it.effect("goes with the session's transition, whichever phase left it (T5)", () =>
    Effect.gen(function* () {
      const repository = yield* ConferenceRepository
      const harness = yield* Harness
      const row = { ...due(Phase.staleLive, 1), activeParticipantCount: 0 }
      yield* insert(row, emptyFor(2, 120))
      yield* record(scan(Phase.emptyRoom), refusal(1, asOf), refusal(2, asOf))
      yield* record(scan(Phase.staleLive), refusal(1, asOf))
      yield* committed(repository.apply(scan(Phase.staleLive), [eventOf(Phase.staleLive, row)]))
      assert.deepStrictEqual(
        (yield* harness.poison).map((poison) => poison.conferenceId),
        ids(2)
      )
    }).pipe(onEmptyTables)
  )

  it.effect("stays with a session whose transition was a lost race (T5, R9)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const room = emptyFor(1, 120)
      yield* insert(room)
      yield* record(scan(Phase.emptyRoom), refusal(1, asOf))
      yield* harness.updateSession(room.id, { activeParticipantCount: 1 })
      const event = eventOf(Phase.emptyRoom, room)
      const written = yield* committed(
        Effect.flatMap(ConferenceRepository, (repository) => repository.apply(scan(Phase.emptyRoom), [event]))
      )
      assert.strictEqual(written.size, 0)
      assert.strictEqual((yield* harness.poison).length, 1)
    }).pipe(onEmptyTables)
  )

  it.effect("goes back with the transaction that wrote it (T1)", () =>
    Effect.gen(function* () {
      const repository = yield* ConferenceRepository
      const harness = yield* Harness
      yield* insert(emptyFor(1, 120))
      const written = repository.recordPoison(scan(Phase.emptyRoom), [refusal(1, later)])
      yield* Effect.flip(committed(Effect.andThen(written, Effect.fail("stop"))))
      assert.deepStrictEqual(yield* harness.poison, [])
    }).pipe(onEmptyTables)
  )
}

const claims = (it: Vitest.MethodsNonLive<Ports>): void => {
  it.effect("claims sessions with a record after all others, with their attempts (T5)", () =>
    Effect.gen(function* () {
      const repository = yield* ConferenceRepository
      yield* insert(emptyFor(1, 400), emptyFor(2, 300), emptyFor(3, 200), emptyFor(4, 100))
      yield* record(scan(Phase.emptyRoom), refusal(1, asOf, 2), refusal(2, asOf, 3))
      const claimed = yield* committed(repository.claim(scan(Phase.emptyRoom), 3, []))
      assert.deepStrictEqual(
        claimed.map((row) => [row.id, row.poisonAttempts]),
        [
          [conferenceId(3), 0],
          [conferenceId(4), 0],
          [conferenceId(1), 2]
        ]
      )
      assert.deepStrictEqual(yield* claim, ids(3, 4, 1, 2))
    }).pipe(onEmptyTables)
  )

  it.effect("still claims every healthy session behind a full batch of poison (T5)", () =>
    Effect.gen(function* () {
      yield* insert(emptyFor(1, 400), emptyFor(2, 300), emptyFor(3, 200), emptyFor(4, 100))
      yield* record(scan(Phase.emptyRoom), refusal(1, asOf), refusal(2, asOf))
      assert.deepStrictEqual(yield* committed(claimIds(Phase.emptyRoom, 2)), ids(3, 4))
    }).pipe(onEmptyTables)
  )

  it.effect("holds a session back until its next attempt is due, to the microsecond (T5)", () =>
    Effect.gen(function* () {
      yield* insert(emptyFor(1, 400), emptyFor(2, 300))
      yield* record(scan(Phase.emptyRoom), refusal(1, later), refusal(2, asOf))
      assert.deepStrictEqual(yield* claim, ids(2))
    }).pipe(onEmptyTables)
  )

  it.effect("tries again at once when the session's row has changed since (T5)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* insert(emptyFor(1, 400), emptyFor(2, 300))
      yield* record(scan(Phase.emptyRoom), refusal(1, later), refusal(2, later))
      assert.deepStrictEqual(yield* claim, [])
      yield* harness.updateSession(conferenceId(2), { peakParticipantCount: 7 })
      assert.deepStrictEqual(yield* claim, ids(2))
    }).pipe(onEmptyTables)
  )

  it.effect("does not take the claim's own row lock for a change (T5)", () =>
    Effect.gen(function* () {
      const repository = yield* ConferenceRepository
      yield* insert(emptyFor(1, 400))
      const of = scan(Phase.emptyRoom)
      yield* committed(Effect.andThen(repository.claim(of, 1, []), repository.recordPoison(of, [refusal(1, later)])))
      assert.deepStrictEqual(yield* claim, [])
    }).pipe(onEmptyTables)
  )

  it.effect("holds a session back only in the phase that refused it (T5)", () =>
    Effect.gen(function* () {
      const row = { ...due(Phase.staleLive, 1), activeParticipantCount: 0 }
      yield* insert(row)
      yield* record(scan(Phase.emptyRoom), refusal(1, later))
      assert.deepStrictEqual(yield* claim, [])
      assert.deepStrictEqual(yield* committed(claimIds(Phase.staleLive)), ids(1))
    }).pipe(onEmptyTables)
  )
}
