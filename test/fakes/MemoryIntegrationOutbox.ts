import { Effect, Layer, Result } from "effect"
import { topic } from "../../src/domain/ConferenceEnded.ts"
import { IntegrationOutbox, type PendingEvent } from "../../src/services/IntegrationOutbox.ts"
import { MemoryDatabase } from "./MemoryDatabase.ts"
import * as MemoryOutbox from "./MemoryOutbox.ts"
import { statement } from "./MemoryTransaction.ts"
import { type OutboxRow, undelivered } from "./Tables.ts"

const decode = (row: OutboxRow): Result.Result<PendingEvent, string> => {
  const problem = MemoryOutbox.headersProblem(row.headers)
  return problem === undefined
    ? Result.succeed({
        id: row.id,
        key: row.messageKey,
        value: JSON.stringify(row.payload),
        headers: row.headers,
        attempts: row.attempts,
        createdAt: row.createdAt
      })
    : Result.fail(problem)
}

/** The outbox table, unique by message id (W6). */
export const layer = (options: { readonly keyPolicy: "park" | "block" } = { keyPolicy: "park" }) =>
  Layer.effect(
    IntegrationOutbox,
    Effect.gen(function* () {
      const database = yield* MemoryDatabase
      const { expire: _, ...delivery } = MemoryOutbox.make(database, {
        table: "outbox",
        isOurs: (row) => row.topic === topic,
        key: (row) => row.messageKey,
        decode,
        ...options
      })
      return IntegrationOutbox.of({
        ...delivery,
        append: (messages) =>
          statement("append", (tx) =>
            database.faults
              .check(
                "append",
                messages.map((message) => message.conferenceId)
              )
              .pipe(
                Effect.andThen(
                  Effect.forEach(
                    messages,
                    (message) =>
                      tx.insert("outbox", message.messageId, { ...message, ...undelivered(database.nextId()) }),
                    { discard: true }
                  )
                )
              )
          )
      })
    })
  )
