import { Effect, Layer } from "effect"
import { RealtimeOutbox } from "../../src/services/RealtimeOutbox.ts"
import { MemoryDatabase } from "./MemoryDatabase.ts"
import { statement } from "./MemoryTransaction.ts"

/** The realtime table: an identity key, so nothing is a duplicate. */
export const layer = Layer.effect(
  RealtimeOutbox,
  Effect.gen(function* () {
    const { faults, nextId } = yield* MemoryDatabase
    return RealtimeOutbox.of({
      append: (signals) =>
        statement("appendRealtime", (tx) =>
          faults
            .check(
              "appendRealtime",
              signals.map((signal) => signal.sessionId)
            )
            .pipe(
              Effect.andThen(
                Effect.forEach(signals, (signal) => tx.insert("realtime", nextId(), signal), { discard: true })
              )
            )
        )
    })
  })
)
