import { layer } from "@effect/vitest"
import { program } from "../contract/CycleFixtures.ts"
import { documentTests } from "../contract/DocumentTests.ts"
import * as MemoryLayers from "../fakes/MemoryLayers.ts"

layer(program(MemoryLayers.layer))("The document's tests, in memory", documentTests)
