import { layer } from "@effect/vitest"
import * as PgPorts from "../contract/PgPorts.ts"
import { runLockContract } from "../contract/RunLockContract.ts"

layer(PgPorts.layer, { excludeTestServices: true })("RunLock on PostgreSQL", runLockContract)
