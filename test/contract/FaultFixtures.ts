/** What the failure suites share: one due room for each phase, each with a recording, and what became of them. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { start } from "../fakes/ManualCycleClock.ts"
import {
  activeSession,
  before,
  conferenceId,
  emptySession,
  provisioningSession,
  recording
} from "../support/Sessions.ts"
import { fromTheStart, options } from "./CycleFixtures.ts"
import { Harness } from "./Harness.ts"

const grace = before(start, options.emptyRoomGrace)
const provision = before(start, options.provisionTimeout)
const stale = before(start, options.staleLiveTimeout)

export const names = ["empty-room", "provision-timeout", "stale-live"]

/** A test that begins with one due room for each phase, in the order of the phases. */
export const fromDueRooms = <A, E, R>(body: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Harness, (harness) =>
    Effect.all([
      harness.insertSessions([emptySession(1, grace), provisioningSession(2, provision), activeSession(3, stale)]),
      harness.insertRecordings([1, 2, 3].map((n) => recording(conferenceId(n), n, grace)))
    ])
  ).pipe(Effect.andThen(body), fromTheStart)

/** Phases whose room is closed, with all its rows; a room that is not closed has none. */
export const closedPhases = Effect.gen(function* () {
  const harness = yield* Harness
  const sessions = yield* harness.sessions
  const closed = sessions.filter((row) => row.endedAt !== null).map((row) => row.id)
  const realtime = yield* harness.realtime
  const closings = yield* harness.closings
  const outbox = yield* harness.outbox
  assert.sameMembers(
    realtime.map((row) => row.sessionId),
    closed
  )
  assert.sameMembers(
    closings.map((row) => row.conferenceId),
    closed
  )
  assert.strictEqual(outbox.length, closed.filter((id) => id !== conferenceId(2)).length)
  for (const row of sessions) {
    const isOpen = row.status === "Active" || row.status === "Provisioning"
    assert.strictEqual(isOpen, row.endedAt === null)
  }
  return sessions.flatMap((row, i) => (row.endedAt === null ? [] : [names[i] ?? ""]))
})
