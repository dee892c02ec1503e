/** Roster and recordings of claimed sessions (W3, R10): ordered, complete, and one bad row is one session's fault (T4). */
import { assert, type Vitest } from "@effect/vitest"
import { Effect, Result } from "effect"
import { RecordingId, UserId } from "../../src/domain/ConferenceSession.ts"
import { ConferenceRepository } from "../../src/services/ConferenceRepository.ts"
import { before, conferenceId, participant, recording, recordingId, userId } from "../support/Sessions.ts"
import { asOf, emptyFor, noDetails, onEmptyTables, type Ports, statuses } from "./Fixtures.ts"
import { Harness } from "./Harness.ts"

const [first, second, third] = [conferenceId(1), conferenceId(2), conferenceId(3)]
const earlier = before(asOf, "1 minute")

const detailsOf = (...ids: ReadonlyArray<typeof first>) =>
  Effect.flatMap(ConferenceRepository, (repository) => repository.details(ids))

export const detailsContract = (it: Vitest.MethodsNonLive<Ports>): void => {
  it.effect("gives the roster in order of joining and the recordings oldest first (W3)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([emptyFor(1, 120), emptyFor(2, 120)])
      yield* harness.insertParticipants([
        participant(first, 3, asOf),
        participant(second, 9, earlier),
        participant(first, 2, earlier, asOf),
        participant(first, 1, earlier)
      ])
      yield* harness.insertRecordings([
        recording(first, 1, asOf, { externalRef: null, status: "Failed" }),
        recording(first, 3, earlier),
        recording(first, 2, earlier, { status: "Available" }),
        recording(second, 9, earlier)
      ])
      const details = yield* detailsOf(first)
      assert.deepStrictEqual([...details.keys()], [first])
      assert.deepStrictEqual(
        details.get(first),
        Result.succeed({
          participants: [
            { userId: UserId.make(userId(1)), joinedAt: earlier, leftAt: null },
            { userId: UserId.make(userId(2)), joinedAt: earlier, leftAt: asOf },
            { userId: UserId.make(userId(3)), joinedAt: asOf, leftAt: null }
          ],
          recordings: [
            { id: RecordingId.make(recordingId(2)), status: "Available", externalRef: "job-2", createdAt: earlier },
            { id: RecordingId.make(recordingId(3)), status: "Recording", externalRef: "job-3", createdAt: earlier },
            { id: RecordingId.make(recordingId(1)), status: "Failed", externalRef: null, createdAt: asOf }
          ]
        })
      )
    }).pipe(onEmptyTables)
  )

  it.effect("knows every status of a recording (R10)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertRecordings(statuses.map((status, n) => recording(first, n, asOf, { status })))
      const details = (yield* detailsOf(first)).get(first)
      const seen = details !== undefined && Result.isSuccess(details) ? details.success.recordings : []
      assert.deepStrictEqual(
        seen.map((row) => row.status),
        statuses
      )
    }).pipe(onEmptyTables)
  )

  it.effect("has an entry for each session, empty where there is nothing", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([emptyFor(1, 120), emptyFor(2, 120)])
      const details = yield* detailsOf(first, second)
      assert.deepStrictEqual(
        new Map(details),
        new Map([first, second].map((id) => [id, Result.succeed(noDetails)] as const))
      )
      assert.strictEqual((yield* detailsOf()).size, 0)
    }).pipe(onEmptyTables)
  )

  it.effect("lets an unknown recording status or an infinite moment spoil its own session alone (T4)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertRecordings([recording(first, 1, asOf, { status: "Melting" }), recording(second, 2, asOf)])
      yield* harness.insertParticipants([participant(third, 1, "-infinity")])
      const details = yield* detailsOf(first, second, third)
      const reason = (id: typeof first) => {
        const outcome = details.get(id)
        return outcome !== undefined && Result.isFailure(outcome) ? outcome.failure.reason : "fine"
      }
      assert.include(reason(first), "status")
      assert.strictEqual(reason(second), "fine")
      assert.include(reason(third), "joinedAt")
    }).pipe(onEmptyTables)
  )
}
