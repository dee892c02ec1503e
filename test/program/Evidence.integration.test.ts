import { layer } from "@effect/vitest"
import { program } from "../contract/CycleFixtures.ts"
import { evidenceTests } from "../contract/EvidenceTests.ts"
import * as PgProgram from "../contract/PgProgram.ts"
import { traceTests } from "../contract/TraceTests.ts"

layer(program(PgProgram.ports), { excludeTestServices: true })("Evidence, on PostgreSQL", (it) => {
  evidenceTests(it)
  traceTests(it)
})
