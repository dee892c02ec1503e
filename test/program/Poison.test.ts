import { layer } from "@effect/vitest"
import { program } from "../contract/CycleFixtures.ts"
import { poisonOrderTests } from "../contract/PoisonOrderTests.ts"
import { poisonTests } from "../contract/PoisonTests.ts"
import * as MemoryLayers from "../fakes/MemoryLayers.ts"

layer(program(MemoryLayers.layer))("Poison, in memory", (it) => {
  poisonTests(it)
  poisonOrderTests(it, 500, 94)
})
