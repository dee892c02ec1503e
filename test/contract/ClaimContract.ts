/** What a phase claims (R1 to R3, R6), and that it never waits for anybody (T2). */
import { assert, type Vitest } from "@effect/vitest"
import { Deferred, Effect, Fiber, Result } from "effect"
import type { ConferenceId } from "../../src/domain/ConferenceSession.ts"
import * as Phase from "../../src/domain/Phase.ts"
import { ConferenceRepository } from "../../src/services/ConferenceRepository.ts"
import { conferenceId, microsecondsAfter, type SessionRow } from "../support/Sessions.ts"
import { asOf, claimIds, committed, due, emptyFor, onEmptyTables, type Ports, scan, toSession } from "./Fixtures.ts"
import { Harness } from "./Harness.ts"

const ids = (...numbers: ReadonlyArray<number>): ReadonlyArray<ConferenceId> => numbers.map(conferenceId)

/** Inserts the rows and gives the ids that one claim of the phase takes. */
const claimAmong = (phase: Phase.Phase, rows: ReadonlyArray<SessionRow>, limit?: number) =>
  Effect.flatMap(Harness, (harness) => harness.insertSessions(rows)).pipe(
    Effect.andThen(committed(claimIds(phase, limit)))
  )

export const claimContract = (it: Vitest.MethodsNonLive<Ports>): void => {
  predicates(it)
  orderAndLimit(it)
  locks(it)
  malformedRows(it)
}

const predicates = (it: Vitest.MethodsNonLive<Ports>): void => {
  for (const phase of Phase.all) {
    const { cutoff } = scan(phase)
    it.effect(
      `${phase.name}: claims a session due since exactly AsOf, not one due a microsecond later (R1, R2, R3)`,
      () =>
        Effect.gen(function* () {
          const rows = [
            due(phase, 1),
            due(phase, 2, microsecondsAfter(cutoff, 1n)),
            due(phase, 3, microsecondsAfter(cutoff, -1n))
          ]
          assert.deepStrictEqual(yield* claimAmong(phase, rows), ids(3, 1))
        }).pipe(onEmptyTables)
    )

    it.effect(`${phase.name}: claims sessions in status ${phase.from} alone (R1, R2, R3)`, () =>
      Effect.gen(function* () {
        const rows = ["Provisioning", "Active", "Ended", "Failed", "Paused"].map(
          (status, i): SessionRow => ({ ...due(phase, i), status })
        )
        assert.deepStrictEqual(yield* claimAmong(phase, rows), ids(phase.from === "Provisioning" ? 0 : 1))
      }).pipe(onEmptyTables)
    )
  }

  it.effect("measures a provisioning room by its creation, an active one by its last activity (R1, R2, R3)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([
        { ...due(Phase.provisionTimeout, 1), lastActivityAt: asOf },
        { ...due(Phase.emptyRoom, 2), createdAt: asOf, startedAt: asOf },
        { ...due(Phase.staleLive, 3), createdAt: asOf, startedAt: asOf }
      ])
      assert.deepStrictEqual(yield* committed(claimIds(Phase.provisionTimeout)), ids(1))
      assert.deepStrictEqual(yield* committed(claimIds(Phase.emptyRoom)), ids(2))
      assert.deepStrictEqual(yield* committed(claimIds(Phase.staleLive)), ids(3))
    }).pipe(onEmptyTables)
  )

  it.effect("leaves a room with somebody in it, or with a negative count, to the stale-live phase (R1, R9, T3)", () =>
    Effect.gen(function* () {
      const rows = [0, 1, -1].map((activeParticipantCount, i) => ({
        ...due(Phase.staleLive, i),
        activeParticipantCount
      }))
      assert.deepStrictEqual(yield* claimAmong(Phase.emptyRoom, rows), ids(0))
      assert.deepStrictEqual(yield* committed(claimIds(Phase.staleLive)), ids(0, 1, 2))
    }).pipe(onEmptyTables)
  )

  it.effect("claims the rooms of all tenants (R7)", () =>
    Effect.gen(function* () {
      const rows = [due(Phase.emptyRoom, 1), due(Phase.emptyRoom, 2)]
      assert.notStrictEqual(rows[0]?.tenantId, rows[1]?.tenantId)
      assert.deepStrictEqual(yield* claimAmong(Phase.emptyRoom, rows), ids(1, 2))
    }).pipe(onEmptyTables)
  )
}

const orderAndLimit = (it: Vitest.MethodsNonLive<Ports>): void => {
  it.effect("takes the oldest first, ties by id, microseconds counted, up to the limit (R6)", () =>
    Effect.gen(function* () {
      const { cutoff } = scan(Phase.emptyRoom)
      const rows = [
        due(Phase.emptyRoom, 4, microsecondsAfter(cutoff, -1n)),
        due(Phase.emptyRoom, 3, microsecondsAfter(cutoff, -2n)),
        due(Phase.emptyRoom, 2, microsecondsAfter(cutoff, -1n)),
        due(Phase.emptyRoom, 1, cutoff)
      ]
      assert.deepStrictEqual(yield* claimAmong(Phase.emptyRoom, rows, 3), ids(3, 2, 4))
      assert.deepStrictEqual(yield* committed(claimIds(Phase.emptyRoom)), ids(3, 2, 4, 1))
    }).pipe(onEmptyTables)
  )

  it.effect("claims nothing where nothing is due", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* claimAmong(Phase.staleLive, []), [])
    }).pipe(onEmptyTables)
  )

  it.effect("passes over sessions already tried in this cycle (T5)", () =>
    Effect.gen(function* () {
      yield* claimAmong(Phase.emptyRoom, [emptyFor(1, 300), emptyFor(2, 200), emptyFor(3, 100)])
      assert.deepStrictEqual(yield* committed(claimIds(Phase.emptyRoom, 2, ids(1))), ids(2, 3))
    }).pipe(onEmptyTables)
  )

  it.effect("reads the whole session, instants to the microsecond", () =>
    Effect.gen(function* () {
      const repository = yield* ConferenceRepository
      const harness = yield* Harness
      const row = { ...due(Phase.staleLive, 1), startedAt: null, mediaType: "Audio", activeParticipantCount: -2 }
      yield* harness.insertSessions([row])
      const [claimed] = yield* committed(repository.claim(scan(Phase.staleLive), 1, []))
      assert.deepStrictEqual(claimed, { id: row.id, session: Result.succeed(toSession(row)), poisonAttempts: 0 })
    }).pipe(onEmptyTables)
  )
}

const locks = (it: Vitest.MethodsNonLive<Ports>): void => {
  it.effect("skips a row that somebody else has locked, without waiting (T2)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([emptyFor(1, 300), emptyFor(2, 200)])
      const join = yield* harness.otherSide
      yield* join.lockRow(conferenceId(1))
      assert.deepStrictEqual(yield* committed(claimIds(Phase.emptyRoom)), ids(2))
      yield* join.rollback
      assert.deepStrictEqual(yield* committed(claimIds(Phase.emptyRoom)), ids(1, 2))
    }).pipe(Effect.scoped, onEmptyTables)
  )

  it.effect("does not claim a room into which somebody joined before it came to the row (R9)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([emptyFor(1, 300)])
      const join = yield* harness.otherSide
      yield* join.update(conferenceId(1), { activeParticipantCount: 1, lastActivityAt: asOf })
      assert.deepStrictEqual(yield* committed(claimIds(Phase.emptyRoom)), [])
      yield* join.commit
      assert.deepStrictEqual(yield* committed(claimIds(Phase.emptyRoom)), [])
    }).pipe(Effect.scoped, onEmptyTables)
  )

  it.effect("keeps its rows from a second claim until the transaction ends (T1)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([emptyFor(1, 300), emptyFor(2, 200), emptyFor(3, 100)])
      const claimed = yield* Deferred.make<void>()
      const finish = yield* Deferred.make<void>()
      const first = yield* Effect.forkChild(
        committed(
          claimIds(Phase.emptyRoom, 2).pipe(
            Effect.tap(Deferred.succeed(claimed, undefined)),
            Effect.tap(Deferred.await(finish))
          )
        )
      )
      yield* Deferred.await(claimed)
      assert.deepStrictEqual(yield* committed(claimIds(Phase.emptyRoom, 2)), ids(3))
      yield* Deferred.succeed(finish, undefined)
      assert.deepStrictEqual(yield* Fiber.join(first), ids(1, 2))
      assert.deepStrictEqual(yield* committed(claimIds(Phase.emptyRoom, 2)), ids(1, 2))
    }).pipe(onEmptyTables)
  )
}

const malformedRows = (it: Vitest.MethodsNonLive<Ports>): void => {
  /** The bad row among two good ones: the reason of its refusal, and whether the good ones decoded. */
  const claimBeside = (bad: SessionRow) =>
    Effect.gen(function* () {
      const repository = yield* ConferenceRepository
      const harness = yield* Harness
      yield* harness.insertSessions([emptyFor(1, 300), bad, emptyFor(3, 100)])
      const rows = yield* committed(repository.claim(scan(Phase.emptyRoom), 10, []))
      const good = rows.filter((row) => row.id !== bad.id).map((row) => Result.isSuccess(row.session))
      assert.deepStrictEqual(good, [true, true])
      const session = rows.find((row) => row.id === bad.id)?.session
      if (session === undefined) return "not claimed"
      return Result.isFailure(session)
        ? { id: session.failure.conferenceId, reason: session.failure.reason }
        : session.success
    })

  const badColumns: ReadonlyArray<readonly [string, Partial<SessionRow>]> = [
    ["mediaType", { mediaType: "Hologram" }],
    ["lastActivityAt", { lastActivityAt: "-infinity" }],
    ["startedAt", { startedAt: "infinity" }],
    ["createdAt", { createdAt: "-infinity" }]
  ]
  for (const [column, changes] of badColumns) {
    it.effect(`claims a row whose ${column} does not decode as malformed, and the others with it (T4)`, () =>
      Effect.gen(function* () {
        const outcome = yield* claimBeside({ ...emptyFor(2, 200), ...changes })
        assert.isTrue(
          typeof outcome === "object" && "reason" in outcome && outcome.reason.includes(column),
          String(outcome)
        )
        assert.isTrue(typeof outcome === "object" && outcome.id === conferenceId(2))
      }).pipe(onEmptyTables)
    )
  }

  it.effect("reads a missing deal as null: the guard refuses such a room, not the decoder (T3)", () =>
    Effect.gen(function* () {
      const row = { ...emptyFor(2, 200), dealId: null }
      assert.deepStrictEqual(yield* claimBeside(row), toSession(row))
    }).pipe(onEmptyTables)
  )

  it.effect("never finds a room due whose last activity lies in the infinite future", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* claimBeside({ ...emptyFor(2, 200), lastActivityAt: "infinity" }), "not claimed")
    }).pipe(onEmptyTables)
  )
}
