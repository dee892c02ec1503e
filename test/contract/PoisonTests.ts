/** Poison sessions in whole cycles: they are left out, and neither fail nor starve the healthy (T3, T4, T5). */
import { assert, type Vitest } from "@effect/vitest"
import { Effect } from "effect"
import type { ConferenceId } from "../../src/domain/ConferenceSession.ts"
import * as Cycle from "../../src/program/Cycle.ts"
import type { RefusalPoint } from "../fakes/Faults.ts"
import { start } from "../fakes/ManualCycleClock.ts"
import {
  activeSession,
  before,
  conferenceId,
  emptySession,
  microsecondsAfter,
  provisioningSession,
  recording,
  type SessionRow
} from "../support/Sessions.ts"
import { fromTheStart, options, type Program } from "./CycleFixtures.ts"
import { Harness } from "./Harness.ts"
import { observed } from "./Observed.ts"

const grace = before(start, options.emptyRoomGrace)
const provision = before(start, options.provisionTimeout)
const stale = before(start, options.staleLiveTimeout)
const hourAgo = before(start, "1 hour")

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

/** Ids of closed sessions, and of those that each kind of row is there for. */
const closed = Effect.gen(function* () {
  const harness = yield* Harness
  const sessions = yield* harness.sessions
  const outbox = yield* harness.outbox
  const realtime = yield* harness.realtime
  const closings = yield* harness.closings
  return {
    sessions: sessions.filter((row) => row.endedAt !== null).map((row) => row.id),
    outbox: outbox.map((row) => (row.payload as { readonly ConferenceId: ConferenceId }).ConferenceId).toSorted(),
    realtime: realtime.map((row) => row.sessionId).toSorted(),
    closings: closings.map((row) => row.conferenceId).toSorted()
  }
})

const everywhere = (ids: ReadonlyArray<ConferenceId>): Effect.Success<typeof closed> => ({
  sessions: [...ids],
  outbox: [...ids],
  realtime: [...ids],
  closings: [...ids]
})

export const poisonTests = (it: Vitest.MethodsNonLive<Program>): void => {
  guardRefusals(it)
  databaseRefusals(it)
  acrossPhases(it)
}

const unfit: ReadonlyArray<SessionRow> = [
  emptySession(11, grace, { startedAt: null }),
  emptySession(12, grace, { startedAt: microsecondsAfter(start, 1n) }),
  emptySession(13, grace, { dealId: null }),
  emptySession(14, grace, { mediaType: "Hologram" }),
  emptySession(15, grace),
  emptySession(16, grace, { createdAt: "infinity" }),
  emptySession(17, grace, { startedAt: "-infinity" })
]

const guardRefusals = (it: Vitest.MethodsNonLive<Program>): void => {
  it.effect("keeps the batch when sessions cannot be decided, and names each of them once (T3, T4)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([emptySession(1, grace), ...unfit, emptySession(21, grace)])
      yield* harness.insertRecordings([recording(conferenceId(15), 1, grace, { status: "Rewinding" })])
      const cycle = yield* observed(Cycle.run)
      assert.strictEqual(cycle.result.outcome, "completed")
      assert.strictEqual(cycle.result.emptyTimeoutCount, 2)
      assert.strictEqual(cycle.result.poisonCount, unfit.length)
      assert.strictEqual(cycle.moved("errors_total"), unfit.length)
      assert.strictEqual(cycle.moved('items_total{outcome="empty_timeout"}'), 2)
      assert.strictEqual(cycle.value("poison_items"), unfit.length)
      assert.deepStrictEqual(yield* closed, everywhere([conferenceId(1), conferenceId(21)]))
      const failed = cycle.saying("item failed")
      assert.deepStrictEqual(
        failed.map((line) => [line.level, line.annotations.conferenceId]).toSorted(),
        unfit.map((row) => ["Error", row.id])
      )
      assert.deepStrictEqual(
        (yield* harness.sessions).filter((row) => unfit.some(({ id }) => id === row.id)),
        unfit
      )
    }).pipe(fromTheStart)
  )

  it.effect("says in log and poison record what is wrong with the session (T4)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions(unfit)
      yield* harness.insertRecordings([recording(conferenceId(15), 1, grace, { status: "Rewinding" })])
      const cycle = yield* observed(Cycle.run)
      const expected = new Map(
        [/started_at is missing/, /is after AsOf/, /deal_id/, /mediaType/, /status/, /createdAt/, /startedAt/].map(
          (pattern, i) => [conferenceId(11 + i), pattern]
        )
      )
      const records = yield* harness.poison
      for (const [id, pattern] of expected) {
        const line = cycle.saying("item failed").find((one) => one.annotations.conferenceId === id)
        assert.match(String(line?.annotations.exception), pattern)
        assert.match(records.find((record) => record.conferenceId === id)?.lastError ?? "", pattern)
      }
    }).pipe(fromTheStart)
  )

  it.effect("fails a provision that has no deal: no event, so no key is needed (R2, W2)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([provisioningSession(1, provision, { dealId: null })])
      const cycle = yield* observed(Cycle.run)
      assert.deepStrictEqual([cycle.result.provisionFailedCount, cycle.result.poisonCount], [1, 0])
    }).pipe(fromTheStart)
  )
}

const points: ReadonlyArray<RefusalPoint> = ["apply", "append", "appendRealtime", "appendClosings", "deferred"]

const databaseRefusals = (it: Vitest.MethodsNonLive<Program>): void => {
  for (const point of points) {
    it.effect(`fixes the rest of the batch when the database refuses one row at ${point} (T4)`, () =>
      Effect.gen(function* () {
        const harness = yield* Harness
        const refused = conferenceId(6)
        yield* harness.insertSessions(range(1, 9).map((n) => emptySession(n, grace)))
        yield* harness.refuse(point, [refused])
        const cycle = yield* observed(Cycle.run)
        const healthy = range(1, 9)
          .map(conferenceId)
          .filter((id) => id !== refused)
        assert.deepStrictEqual(yield* closed, everywhere(healthy))
        assert.deepStrictEqual(
          [cycle.result.outcome, cycle.result.emptyTimeoutCount, cycle.result.poisonCount],
          ["completed", 8, 1]
        )
        assert.strictEqual(cycle.moved("errors_total"), 1)
        const [line, ...others] = cycle.lines.filter(({ level }) => level === "Error")
        assert.deepStrictEqual(others, [])
        assert.deepStrictEqual([line?.message, line?.annotations.conferenceId], ["item failed", refused])
        assert.match(String(line?.annotations.exception), /refused.*23514/)
        assert.notInclude(JSON.stringify(cycle.lines), "25P02")
      }).pipe(fromTheStart)
    )
  }

  it.effect("closes 95 of 100 when five outbox rows are refused, and has rows for exactly those (T4)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const refused = [3, 4, 50, 99, 100].map(conferenceId)
      yield* harness.insertSessions(range(1, 100).map((n) => emptySession(n, grace)))
      yield* harness.refuse("append", refused)
      const cycle = yield* observed(Cycle.run)
      assert.deepStrictEqual(
        yield* closed,
        everywhere(
          range(1, 100)
            .map(conferenceId)
            .filter((id) => !refused.includes(id))
        )
      )
      assert.strictEqual(cycle.moved("errors_total"), 5)
      assert.strictEqual(cycle.moved('items_total{outcome="empty_timeout"}'), 95)
    }).pipe(fromTheStart)
  )

  it.effect("completes when every session of a batch is poison, and closes nothing (T4)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const all = range(1, 10).map(conferenceId)
      yield* harness.insertSessions(range(1, 10).map((n) => emptySession(n, grace)))
      yield* harness.refuse("apply", all)
      const cycle = yield* observed(Cycle.run)
      assert.deepStrictEqual([cycle.result.outcome, cycle.result.poisonCount], ["completed", 10])
      assert.deepStrictEqual(yield* closed, everywhere([]))
      assert.strictEqual((yield* harness.poison).length, 10)
    }).pipe(fromTheStart)
  )
}

const acrossPhases = (it: Vitest.MethodsNonLive<Program>): void => {
  it.effect("does not try again in stale-live what empty-room refused in the same cycle (T5)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([emptySession(1, stale), activeSession(2, stale)])
      yield* harness.refuse("apply", [conferenceId(1)])
      const cycle = yield* observed(Cycle.run)
      assert.strictEqual(cycle.result.poisonCount, 1)
      assert.strictEqual(cycle.moved("errors_total"), 1)
      assert.strictEqual(cycle.saying("item failed").length, 1)
      assert.deepStrictEqual(yield* closed, everywhere([conferenceId(2)]))
      assert.strictEqual(cycle.value("active_backlog"), 1)
    }).pipe(fromTheStart)
  )

  it.effect("counts a refused session once in the gauge, whichever phases refused it (M, T5)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([emptySession(1, stale), emptySession(2, hourAgo)])
      yield* harness.refuse("append", [conferenceId(1), conferenceId(2)])
      yield* Cycle.run
      // The session leaves empty-room's predicate, and meets stale-live.
      yield* harness.updateSession(conferenceId(1), { activeParticipantCount: 1 })
      const cycle = yield* observed(Cycle.run)
      assert.strictEqual(cycle.result.poisonCount, 2)
      assert.strictEqual(cycle.value("poison_items"), 2)
    }).pipe(fromTheStart)
  )
}
