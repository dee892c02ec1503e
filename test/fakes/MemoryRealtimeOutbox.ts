import { Effect, Layer, Result } from "effect"
import { type PendingSignal, RealtimeOutbox } from "../../src/services/RealtimeOutbox.ts"
import { MemoryDatabase } from "./MemoryDatabase.ts"
import * as MemoryOutbox from "./MemoryOutbox.ts"
import { statement } from "./MemoryTransaction.ts"
import { asAppended, type RealtimeRow, undelivered } from "./Tables.ts"

const decode = (row: RealtimeRow): Result.Result<PendingSignal, string> => {
  const problem = MemoryOutbox.headersProblem(row.headers)
  return problem === undefined
    ? Result.succeed({ ...asAppended(row), id: row.id, attempts: row.attempts })
    : Result.fail(problem)
}

/** The realtime table: an identity key, so nothing is a duplicate. */
export const layer = Layer.effect(
  RealtimeOutbox,
  Effect.gen(function* () {
    const database = yield* MemoryDatabase
    return RealtimeOutbox.of({
      ...MemoryOutbox.make(database, {
        table: "realtime",
        isOurs: (row) => row.kind === "ConferenceEnded",
        key: (row) => row.chatId,
        decode,
        keyPolicy: "park"
      }),
      append: (signals) =>
        statement("appendRealtime", (tx) =>
          database.faults
            .check(
              "appendRealtime",
              signals.map((signal) => signal.sessionId)
            )
            .pipe(
              Effect.andThen(
                Effect.forEach(
                  signals,
                  (signal) => {
                    const id = database.nextId()
                    return tx.insert("realtime", id, { ...signal, ...undelivered(id) })
                  },
                  { discard: true }
                )
              )
            )
        )
    })
  })
)
