/**
 * Rooms that were left hanging before the traffic begins, a third for each phase, all just past their window: the
 * messenger's own commands at times in the past. With them a worker has something to close at its next tick, however
 * long its windows are.
 */
import { Duration, Effect, Ref } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Instant from "../domain/Instant.ts"
import type { Windows } from "../domain/Phase.ts"
import * as MessengerWrites from "./MessengerWrites.ts"
import * as Run from "./Run.ts"

const meeting = Duration.minutes(3)

const kinds = ["emptied", "crashed", "never admitted"] as const

/** Writes `count` such rooms. */
export const leaveBehind = (windows: Windows, count: number): Effect.Effect<void, SqlError, SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const run = yield* Run.fresh
    const now = yield* MessengerWrites.systemNow
    const clock = yield* Ref.make(now)
    const writes = yield* MessengerWrites.make({ now: Ref.get(clock), hold: Effect.void })
    const at = <A>(instant: Instant.Instant, command: Effect.Effect<A, SqlError>) =>
      Effect.andThen(Ref.set(clock, instant), command)

    const begin = Effect.fnUntraced(function* (number: number, kind: (typeof kinds)[number]) {
      const id = run.conferenceId(number)
      const user = run.userId(number, 0)
      const window = kind === "crashed" ? windows.staleLiveTimeout : windows.emptyRoomGrace
      const lastSign = Instant.minus(now, kind === "never admitted" ? windows.provisionTimeout : window)
      const began = kind === "never admitted" ? lastSign : Instant.minus(lastSign, meeting)
      const room = {
        id,
        chatId: run.chatId(number),
        dealId: run.dealId(number),
        tenantId: run.tenantId(number),
        startedByUserId: user,
        mediaType: "Video"
      } as const
      yield* at(began, writes.provision(room))
      if (kind === "never admitted") return
      yield* at(began, writes.admit(id))
      yield* at(began, writes.join(id, user))
      yield* at(began, writes.startRecording(id, run.recordingId(number, 0)))
      yield* at(lastSign, kind === "crashed" ? writes.heartbeat(id) : writes.leave(id, user))
    })

    // Each room appears whole: its past alone, seen half written by a worker that runs already, would be due as well.
    for (let number = 0; number < count; number++) {
      yield* sql.withTransaction(begin(number, kinds[number % kinds.length] ?? "emptied"))
    }
    yield* Effect.logInfo("rooms were left hanging for the worker to find").pipe(Effect.annotateLogs({ count }))
  })
