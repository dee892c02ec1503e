import { Effect, Layer } from "effect"
import { Store } from "../../src/services/Store.ts"
import { MemoryDatabase } from "./MemoryDatabase.ts"

export const layer = Layer.effect(
  Store,
  Effect.gen(function* () {
    const { faults } = yield* MemoryDatabase
    return Store.of({ ping: faults.hit("ping") })
  })
)
