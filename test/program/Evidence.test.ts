import { layer } from "@effect/vitest"
import { program } from "../contract/CycleFixtures.ts"
import { evidenceTests } from "../contract/EvidenceTests.ts"
import { traceTests } from "../contract/TraceTests.ts"
import * as MemoryLayers from "../fakes/MemoryLayers.ts"

layer(program(MemoryLayers.layer))("Evidence, in memory", (it) => {
  evidenceTests(it)
  traceTests(it)
})
