import { layer } from "@effect/vitest"
import { program } from "../contract/CycleFixtures.ts"
import { documentTests } from "../contract/DocumentTests.ts"
import * as PgProgram from "../contract/PgProgram.ts"

layer(program(PgProgram.ports), { excludeTestServices: true })("The document's tests, on PostgreSQL", documentTests)
