/** How a transition is written (R4), and that the write asks the whole predicate again (R9, T3). */
import { assert, type Vitest } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as Instant from "../../src/domain/Instant.ts"
import * as Phase from "../../src/domain/Phase.ts"
import { ConferenceRepository } from "../../src/services/ConferenceRepository.ts"
import { conferenceId, microsecondsAfter, participant, recording, type SessionRow } from "../support/Sessions.ts"
import { asOf, committed, due, eventOf, onEmptyTables, type Ports, scan } from "./Fixtures.ts"
import { Harness } from "./Harness.ts"

const apply = (phase: Phase.Phase, rows: ReadonlyArray<SessionRow>) =>
  Effect.flatMap(ConferenceRepository, (repository) =>
    repository.apply(
      scan(phase),
      rows.map((row) => eventOf(phase, row))
    )
  )

/** What R4 lets a transition change. */
const closedBy = (phase: Phase.Phase, row: SessionRow): SessionRow => ({
  ...row,
  status: phase.to,
  endReason: phase.endReason,
  endedAt: asOf,
  updatedAt: asOf,
  durationSeconds:
    typeof row.startedAt === "bigint" ? Instant.wholeSecondsBetween(Instant.Instant.make(row.startedAt), asOf) : null
})

export const applyContract = (it: Vitest.MethodsNonLive<Ports>): void => {
  writes(it)
  guard(it)
}

const writes = (it: Vitest.MethodsNonLive<Ports>): void => {
  for (const phase of Phase.all) {
    it.effect(`${phase.name}: writes status, reason, end and duration, and nothing else (R4)`, () =>
      Effect.gen(function* () {
        const harness = yield* Harness
        const row = due(phase, 1)
        const bystander = due(phase, 2)
        yield* harness.insertSessions([row, bystander])
        yield* harness.insertParticipants([participant(row.id, 1, asOf)])
        yield* harness.insertRecordings([recording(row.id, 1, asOf)])
        const roster = yield* harness.participants
        const recordings = yield* harness.recordings
        assert.deepStrictEqual([...(yield* committed(apply(phase, [row])))], [row.id])
        assert.deepStrictEqual(yield* harness.sessions, [closedBy(phase, row), bystander])
        assert.deepStrictEqual(yield* harness.participants, roster)
        assert.deepStrictEqual(yield* harness.recordings, recordings)
      }).pipe(onEmptyTables)
    )
  }

  it.effect("gives each session of a batch its own duration, in whole seconds rounded down (R4)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const rows = [1, 2, 3].map((n) => ({
        ...due(Phase.staleLive, n),
        startedAt: microsecondsAfter(asOf, -1_000_000n * BigInt(20_000 + n) - 999_999n)
      }))
      yield* harness.insertSessions(rows)
      const written = yield* committed(apply(Phase.staleLive, rows))
      assert.strictEqual(written.size, 3)
      assert.deepStrictEqual(
        (yield* harness.sessions).map((row) => row.durationSeconds),
        [20_001, 20_002, 20_003]
      )
    }).pipe(onEmptyTables)
  )

  it.effect("writes nothing for no events", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* committed(apply(Phase.emptyRoom, []))).size, 0)
    }).pipe(onEmptyTables)
  )

  it.effect("refuses a batch with a row that the database does not take, as a row's fault (T4, T7)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const rows = [due(Phase.emptyRoom, 1), due(Phase.emptyRoom, 2)]
      yield* harness.insertSessions(rows)
      yield* harness.refuse("apply", [conferenceId(2)])
      const error = yield* Effect.flip(committed(apply(Phase.emptyRoom, rows)))
      assert.isTrue(error._tag === "RowRefused" && error.code === "23514")
      assert.deepStrictEqual(yield* harness.sessions, rows)
    }).pipe(onEmptyTables)
  )
}

const guard = (it: Vitest.MethodsNonLive<Ports>): void => {
  const changes: ReadonlyArray<readonly [string, Phase.Phase, Partial<SessionRow>]> = [
    ["ended by somebody", Phase.emptyRoom, { status: "Ended", endReason: "Completed" }],
    ["joined", Phase.emptyRoom, { activeParticipantCount: 1 }],
    ["counted below zero", Phase.emptyRoom, { activeParticipantCount: -1 }],
    ["active again", Phase.emptyRoom, { lastActivityAt: microsecondsAfter(scan(Phase.emptyRoom).cutoff, 1n) }],
    ["come up", Phase.provisionTimeout, { status: "Active", startedAt: asOf }],
    ["failed by somebody", Phase.provisionTimeout, { status: "Failed", endReason: "Error" }],
    ["created anew", Phase.provisionTimeout, { createdAt: microsecondsAfter(scan(Phase.provisionTimeout).cutoff, 1n) }],
    ["ended by somebody", Phase.staleLive, { status: "Ended", endReason: "Completed" }],
    ["active again", Phase.staleLive, { lastActivityAt: microsecondsAfter(scan(Phase.staleLive).cutoff, 1n) }]
  ]
  for (const [what, phase, change] of changes) {
    it.effect(`${phase.name}: leaves a session alone that was ${what} behind the claim (T3, R9)`, () =>
      Effect.gen(function* () {
        const harness = yield* Harness
        const rows = [due(phase, 1), due(phase, 2)]
        yield* harness.insertSessions(rows)
        yield* harness.updateSession(conferenceId(1), change)
        const [changed] = yield* harness.sessions
        assert.deepStrictEqual([...(yield* committed(apply(phase, rows)))], [conferenceId(2)])
        assert.deepStrictEqual((yield* harness.sessions)[0], changed)
      }).pipe(onEmptyTables)
    )
  }

  it.effect("closes a room with a negative count by stale-live (T3)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const row = { ...due(Phase.staleLive, 1), activeParticipantCount: -1 }
      yield* harness.insertSessions([row])
      assert.strictEqual((yield* committed(apply(Phase.staleLive, [row]))).size, 1)
      assert.deepStrictEqual(yield* harness.sessions, [closedBy(Phase.staleLive, row)])
    }).pipe(onEmptyTables)
  )

  it.effect("is a no-op on a session that is closed already (R5)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const row = due(Phase.staleLive, 1)
      yield* harness.insertSessions([row])
      yield* committed(apply(Phase.staleLive, [row]))
      const closed = yield* harness.sessions
      assert.strictEqual((yield* committed(apply(Phase.staleLive, [row]))).size, 0)
      assert.strictEqual((yield* committed(apply(Phase.emptyRoom, [{ ...row, activeParticipantCount: 0 }]))).size, 0)
      assert.deepStrictEqual(yield* harness.sessions, closed)
    }).pipe(onEmptyTables)
  )

  it.effect("asks the predicate once the other side is through, not before (R9)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const row = due(Phase.emptyRoom, 1)
      yield* harness.insertSessions([row])
      const join = yield* harness.otherSide
      yield* join.update(row.id, { activeParticipantCount: 1, lastActivityAt: asOf })
      const writing = yield* Effect.forkChild(committed(apply(Phase.emptyRoom, [row])), { startImmediately: true })
      yield* harness.lockWaitSeen
      yield* join.commit
      assert.strictEqual((yield* Fiber.join(writing)).size, 0)
      assert.strictEqual((yield* harness.sessions)[0]?.status, "Active")
    }).pipe(Effect.scoped, onEmptyTables)
  )
}
