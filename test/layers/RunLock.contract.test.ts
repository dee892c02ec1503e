import { layer } from "@effect/vitest"
import { runLockContract } from "../contract/RunLockContract.ts"
import * as MemoryLayers from "../fakes/MemoryLayers.ts"

layer(MemoryLayers.layer)("RunLock in memory", runLockContract)
