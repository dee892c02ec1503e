import { layer } from "@effect/vitest"
import { realtimeDeliveryContract } from "../contract/OutboxDeliveryContract.ts"
import * as MemoryLayers from "../fakes/MemoryLayers.ts"

layer(MemoryLayers.layer)("delivery from the RealtimeOutbox in memory", realtimeDeliveryContract)
