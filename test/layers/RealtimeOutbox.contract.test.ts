import { layer } from "@effect/vitest"
import { realtimeOutboxContract } from "../contract/OutboxContract.ts"
import * as MemoryLayers from "../fakes/MemoryLayers.ts"

layer(MemoryLayers.layer)("RealtimeOutbox in memory", realtimeOutboxContract)
