import { Effect, Layer } from "effect"
import { IntegrationOutbox } from "../../src/services/IntegrationOutbox.ts"
import { MemoryDatabase } from "./MemoryDatabase.ts"
import { statement } from "./MemoryTransaction.ts"

/** The outbox table, unique by message id (W6). */
export const layer = Layer.effect(
  IntegrationOutbox,
  Effect.gen(function* () {
    const { faults } = yield* MemoryDatabase
    return IntegrationOutbox.of({
      append: (messages) =>
        statement("append", (tx) =>
          faults
            .check(
              "append",
              messages.map((message) => message.conferenceId)
            )
            .pipe(
              Effect.andThen(
                Effect.forEach(messages, (message) => tx.insert("outbox", message.messageId, message), {
                  discard: true
                })
              )
            )
        )
    })
  })
)
