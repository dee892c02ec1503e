import { layer } from "@effect/vitest"
import { program } from "../contract/CycleFixtures.ts"
import * as PgProgram from "../contract/PgProgram.ts"
import { poisonOrderTests } from "../contract/PoisonOrderTests.ts"
import { poisonTests } from "../contract/PoisonTests.ts"

layer(program(PgProgram.ports), { excludeTestServices: true })("Poison, on PostgreSQL", (it) => {
  poisonTests(it)
  poisonOrderTests(it, 60, 20)
})
