/** The eleven tests of the specification ("The document's own tests"), each under its name there. */
import { assert, describe, type Vitest } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import type { ConferenceId } from "../../src/domain/ConferenceSession.ts"
import * as Instant from "../../src/domain/Instant.ts"
import * as Cycle from "../../src/program/Cycle.ts"
import { RunLock } from "../../src/services/RunLock.ts"
import { start, Timeline } from "../fakes/ManualCycleClock.ts"
import { RecorderControl } from "../fakes/MemoryRecorder.ts"
import {
  activeSession,
  before,
  conferenceId,
  emptySession,
  microsecondsAfter,
  participant,
  provisioningSession,
  recording
} from "../support/Sessions.ts"
import { bypassedRunLock, fromTheStart, options, type Program, pausedBatch } from "./CycleFixtures.ts"
import { Harness } from "./Harness.ts"

const grace = before(start, options.emptyRoomGrace)
const stale = before(start, options.staleLiveTimeout)
const provision = before(start, options.provisionTimeout)

const sessionOf = (id: ConferenceId) =>
  Effect.flatMap(Harness, (harness) => harness.sessions).pipe(
    Effect.map((rows) => rows.find((row) => row.id === id)),
    Effect.map((row) => {
      assert(row !== undefined, `session ${id} is there`)
      return row
    })
  )

/** How many rows each place got; all of them are fixed with the transition. */
const written = Effect.gen(function* () {
  const harness = yield* Harness
  const outbox = yield* harness.outbox
  const realtime = yield* harness.realtime
  const closings = yield* harness.closings
  return { outbox: outbox.length, realtime: realtime.length, closings: closings.length }
})

const counts = (summary: Effect.Success<typeof Cycle.run>) => [
  summary.outcome,
  summary.emptyTimeoutCount,
  summary.provisionFailedCount,
  summary.staleTimeoutCount
]

export const documentTests = (it: Vitest.MethodsNonLive<Program>): void => {
  phases(it)
  races(it)
  describe("Parallel instances", () => parallelInstances(it))
  endings(it)
}

const phases = (it: Vitest.MethodsNonLive<Program>): void => {
  it.effect("Empty batch: with nothing past its window a cycle completes and changes nothing (R1, R2, R3)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([
        emptySession(1, microsecondsAfter(grace, 1n)),
        provisioningSession(2, microsecondsAfter(provision, 1n)),
        activeSession(3, microsecondsAfter(stale, 1n))
      ])
      const untouched = yield* harness.sessions
      assert.deepStrictEqual(counts(yield* Cycle.run), ["completed", 0, 0, 0])
      assert.deepStrictEqual(yield* harness.sessions, untouched)
      assert.deepStrictEqual(yield* written, { outbox: 0, realtime: 0, closings: 0 })
    }).pipe(fromTheStart)
  )

  it.effect("Empty-room: an empty room past its grace ends with EmptyTimeout, event and push (R1, R4, W1)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const room = emptySession(1, grace, { startedAt: before(start, "600.5 seconds") })
      yield* harness.insertSessions([room])
      assert.deepStrictEqual(counts(yield* Cycle.run), ["completed", 1, 0, 0])
      assert.deepStrictEqual(yield* sessionOf(room.id), {
        ...room,
        status: "Ended",
        endReason: "EmptyTimeout",
        endedAt: start,
        updatedAt: start,
        durationSeconds: 600
      })
      const [message] = yield* harness.outbox
      assert.strictEqual(message?.topic, "pin.messenger.conference-ended.v1")
      assert.strictEqual(message?.messageKey, room.dealId)
      const [signal] = yield* harness.realtime
      assert.deepStrictEqual(
        [signal?.kind, signal?.targetKind, signal?.sessionKind, signal?.sessionId, signal?.signal],
        ["ConferenceEnded", "ChatGroup", "Conference", room.id, "Ended"]
      )
    }).pipe(fromTheStart)
  )

  it.effect("Someone joined in the grace: a room with somebody inside is left alone (R9)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const room = activeSession(1, grace, { activeParticipantCount: 1 })
      yield* harness.insertSessions([room])
      assert.deepStrictEqual(counts(yield* Cycle.run), ["completed", 0, 0, 0])
      assert.deepStrictEqual(yield* sessionOf(room.id), room)
    }).pipe(fromTheStart)
  )

  it.effect("Provision-timeout: a room that never came up fails with Error and no integration event (R2, W2)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const room = provisioningSession(1, provision)
      yield* harness.insertSessions([room])
      assert.deepStrictEqual(counts(yield* Cycle.run), ["completed", 0, 1, 0])
      assert.deepStrictEqual(yield* sessionOf(room.id), {
        ...room,
        status: "Failed",
        endReason: "Error",
        endedAt: start,
        updatedAt: start
      })
      assert.deepStrictEqual(yield* written, { outbox: 0, realtime: 1, closings: 1 })
      const [signal] = yield* harness.realtime
      assert.strictEqual(signal?.signal, "Failed")
    }).pipe(fromTheStart)
  )

  it.effect("Stale-live: a room without presence ends with Timeout, whatever its count says (R3)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([
        activeSession(1, stale, { activeParticipantCount: 3 }),
        activeSession(2, stale, { activeParticipantCount: -1 })
      ])
      yield* harness.insertParticipants([participant(conferenceId(1), 7, stale)])
      assert.deepStrictEqual(counts(yield* Cycle.run), ["completed", 0, 0, 2])
      assert.deepStrictEqual(
        (yield* harness.sessions).map((row) => [row.status, row.endReason, row.activeParticipantCount]),
        [
          ["Ended", "Timeout", 3],
          ["Ended", "Timeout", -1]
        ]
      )
      assert.deepStrictEqual(yield* written, { outbox: 2, realtime: 2, closings: 2 })
    }).pipe(fromTheStart)
  )

  it.effect("Active recording: the recorder is asked to stop after the commit, in every phase (R10)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const recorder = yield* RecorderControl
      const earlier = (yield* recorder.requests).length
      const rooms = [emptySession(1, grace), provisioningSession(2, provision), activeSession(3, stale)]
      yield* harness.insertSessions(rooms)
      yield* harness.insertRecordings(
        rooms.flatMap((room, i) => [
          recording(room.id, 10 * i + 1, stale, { status: ["Pending", "Recording", "Uploading"][i] ?? "" }),
          recording(room.id, 10 * i + 2, stale, { status: "Failed" })
        ])
      )
      const recordings = yield* harness.recordings
      yield* Cycle.run
      while ((yield* recorder.requests).length < earlier + 3) yield* Effect.yieldNow
      const requests = (yield* recorder.requests).slice(earlier)
      assert.sameDeepMembers(
        requests.map((request) => [request.conferenceId, request.externalRef, request.reason]),
        [
          [conferenceId(1), "job-1", "EmptyTimeout"],
          [conferenceId(2), "job-11", "Error"],
          [conferenceId(3), "job-21", "Timeout"]
        ]
      )
      assert.deepStrictEqual(yield* harness.recordings, recordings, "the recording's own path writes its rows")
    }).pipe(fromTheStart)
  )

  it.effect("Idempotency: another cycle over closed rooms changes nothing and sends no second event (R5)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const timeline = yield* Timeline
      yield* harness.insertSessions([
        emptySession(1, stale),
        provisioningSession(2, provision),
        activeSession(3, stale),
        emptySession(4, stale, { status: "Ended", endReason: "Completed", endedAt: stale }),
        emptySession(5, stale, { status: "Failed", endReason: "Error", endedAt: stale })
      ])
      assert.deepStrictEqual(counts(yield* Cycle.run), ["completed", 1, 1, 1])
      const closed = yield* harness.sessions
      const rows = yield* written
      yield* timeline.advance("5 hours")
      assert.deepStrictEqual(counts(yield* Cycle.run), ["completed", 0, 0, 0])
      assert.deepStrictEqual(yield* harness.sessions, closed)
      assert.deepStrictEqual(yield* written, rows)
    }).pipe(fromTheStart)
  )
}

const races = (it: Vitest.MethodsNonLive<Program>): void => {
  it.effect(
    "Race with end-conference: a room that the command holds is skipped, and left as the command ends it (T2)",
    () =>
      Effect.gen(function* () {
        const harness = yield* Harness
        const room = emptySession(1, grace)
        yield* harness.insertSessions([room, emptySession(2, grace)])
        const command = yield* harness.otherSide
        yield* command.lockRow(room.id)
        const summary = yield* Cycle.run
        assert.deepStrictEqual(counts(summary), ["completed", 1, 0, 0])
        assert.strictEqual(summary.skippedLockedCount, 1)
        yield* command.update(room.id, { status: "Ended", endReason: "Completed", endedAt: start })
        yield* command.commit
        assert.deepStrictEqual(counts(yield* Cycle.run), ["completed", 0, 0, 0])
        assert.strictEqual((yield* sessionOf(room.id)).endReason, "Completed")
        assert.deepStrictEqual(yield* written, { outbox: 1, realtime: 1, closings: 1 })
      }).pipe(Effect.scoped, fromTheStart)
  )
}

const parallelInstances = (it: Vitest.MethodsNonLive<Program>): void => {
  it.effect("under the run lock only one runs, the other skips its tick (L2)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([emptySession(1, grace)])
      const paused = yield* pausedBatch
      const first = yield* Effect.forkChild(Effect.provide(Cycle.run, paused.layer))
      yield* paused.reached
      assert.deepStrictEqual(counts(yield* Cycle.run), ["lock-busy", 0, 0, 0])
      yield* paused.release
      assert.deepStrictEqual(counts(yield* Fiber.join(first)), ["completed", 1, 0, 0])
      assert.deepStrictEqual(yield* written, { outbox: 1, realtime: 1, closings: 1 })
    }).pipe(fromTheStart)
  )

  it.effect("with the lock bypassed, skip-locked and guard still close each room once (T2, T3)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions(Array.from({ length: 40 }, (_, i) => emptySession(i + 1, grace)))
      const paused = yield* pausedBatch
      const slow = yield* Effect.forkChild(Cycle.run.pipe(Effect.provide([paused.layer, bypassedRunLock])))
      yield* paused.reached
      const others = yield* Effect.all([Cycle.run, Cycle.run], { concurrency: 2 }).pipe(Effect.provide(bypassedRunLock))
      yield* paused.release
      const all = [yield* Fiber.join(slow), ...others]
      assert.deepStrictEqual(
        all.map((summary) => summary.outcome),
        ["completed", "completed", "completed"]
      )
      assert.strictEqual(
        all.reduce((sum, summary) => sum + summary.emptyTimeoutCount, 0),
        40
      )
      const messages = yield* harness.outbox
      assert.strictEqual(new Set(messages.map((message) => message.messageId)).size, 40)
      assert.deepStrictEqual(yield* written, { outbox: 40, realtime: 40, closings: 40 })
    }).pipe(fromTheStart)
  )
}

const endings = (it: Vitest.MethodsNonLive<Program>): void => {
  it.effect(
    "Cancellation: a batch that is cut short is gone whole, its locks are free, the next cycle closes it (L5)",
    () =>
      Effect.gen(function* () {
        const harness = yield* Harness
        const runLock = yield* RunLock
        yield* harness.insertSessions([emptySession(1, grace), emptySession(2, grace)])
        const untouched = yield* harness.sessions
        const paused = yield* pausedBatch
        const fiber = yield* Effect.forkChild(Effect.provide(Cycle.run, paused.layer))
        yield* paused.reached
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(yield* harness.sessions, untouched)
        assert.deepStrictEqual(yield* written, { outbox: 0, realtime: 0, closings: 0 })
        assert.isTrue(Option.isSome(yield* Effect.scoped(runLock.tryAcquire)), "the run lock is free")
        assert.deepStrictEqual(counts(yield* Cycle.run), ["completed", 2, 0, 0])
      }).pipe(fromTheStart)
  )

  it.effect("SLO precision: an empty room is closed by LastActivityAt + EmptyRoomGrace + PollingInterval (S1)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const timeline = yield* Timeline
      // Due one microsecond after a tick: the worst moment there is.
      const room = emptySession(1, microsecondsAfter(grace, 1n))
      yield* harness.insertSessions([room])
      assert.deepStrictEqual(counts(yield* Cycle.run), ["completed", 0, 0, 0])
      yield* timeline.advance(options.pollingInterval)
      assert.deepStrictEqual(counts(yield* Cycle.run), ["completed", 1, 0, 0])
      const { endedAt, lastActivityAt } = yield* sessionOf(room.id)
      assert(typeof endedAt === "bigint" && typeof lastActivityAt === "bigint")
      const limit = Instant.plus(Instant.plus(lastActivityAt, options.emptyRoomGrace), options.pollingInterval)
      assert.isTrue(endedAt <= limit)
    }).pipe(fromTheStart)
  )
}
