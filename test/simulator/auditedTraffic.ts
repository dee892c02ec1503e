/** A small day of traffic, rightly closed: one room for each way that a room can stand at `lastAsOf`. */
import { Duration, Effect, Ref } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { Windows } from "../../src/domain/Phase.ts"
import { audit, type Options } from "../../src/simulator/Audit.ts"
import { messenger, roomOf, secondsIn } from "./messenger.ts"
import { cycle } from "./rightWorker.ts"

const windows: Windows = {
  emptyRoomGrace: Duration.seconds(90),
  provisionTimeout: Duration.minutes(2),
  staleLiveTimeout: Duration.hours(4)
}

const staleAt = 20 + 4 * 3600

export const options: Options = {
  windows,
  asOf: secondsIn(staleAt + 2),
  allowance: Duration.seconds(60),
  provisionFailedSignal: true
}

export const traffic = Effect.gen(function* () {
  const { clock, run, writes } = yield* messenger()
  const at = <A, E, R>(seconds: number, command: Effect.Effect<A, E, R>) =>
    Effect.andThen(Ref.set(clock, secondsIn(seconds)), command)
  const begin = (number: number, seconds: number) => {
    const room = roomOf(run, number)
    return at(seconds, writes.provision(room)).pipe(
      Effect.andThen(at(seconds + 1, writes.admit(room.id))),
      Effect.andThen(at(seconds + 2, writes.join(room.id, run.userId(number, 0)))),
      Effect.as(room.id)
    )
  }
  const emptied = yield* begin(0, 0)
  yield* writes.startRecording(emptied, run.recordingId(0, 0))
  yield* at(10, writes.leave(emptied, run.userId(0, 0)))
  const zombie = yield* begin(1, 0)
  yield* at(20, writes.heartbeat(zombie))
  const unborn = roomOf(run, 2).id
  yield* at(0, writes.provision(roomOf(run, 2)))
  const completed = yield* begin(3, 0)
  yield* at(30, writes.endConference(completed))
  yield* cycle(windows, secondsIn(101))
  yield* cycle(windows, secondsIn(121))
  const live = yield* begin(4, staleAt - 60)
  const justEmptied = yield* begin(5, staleAt - 60)
  yield* at(staleAt - 50, writes.leave(justEmptied, run.userId(5, 0)))
  const coming = roomOf(run, 6).id
  yield* at(staleAt - 100, writes.provision(roomOf(run, 6)))
  yield* cycle(windows, secondsIn(staleAt + 1))
  return { emptied, zombie, unborn, completed, live, justEmptied, coming }
})

export type Rooms = Effect.Success<typeof traffic>

/** The audit of the traffic after `statement`, which is undone afterwards. */
export const auditAfter = (statement: string, changed: Partial<Options> = {}) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const mutated = sql.unsafe(statement).pipe(
      Effect.andThen(audit({ ...options, ...changed })),
      // A failure is what rolls a transaction back.
      Effect.flatMap((report) => Effect.fail({ report }))
    )
    return yield* sql.withTransaction(mutated).pipe(
      Effect.catchIf(
        (error): error is Extract<typeof error, { report: unknown }> => "report" in error,
        (error) => Effect.succeed(error.report)
      )
    )
  })
