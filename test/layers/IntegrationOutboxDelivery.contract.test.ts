import { layer } from "@effect/vitest"
import { Layer } from "effect"
import { blockingDeliveryContract, integrationDeliveryContract } from "../contract/OutboxDeliveryContract.ts"
import * as MemoryIntegrationOutbox from "../fakes/MemoryIntegrationOutbox.ts"
import * as MemoryLayers from "../fakes/MemoryLayers.ts"

layer(MemoryLayers.layer)("delivery from the IntegrationOutbox in memory", integrationDeliveryContract)

const blocking = Layer.provideMerge(MemoryIntegrationOutbox.layer({ keyPolicy: "block" }), MemoryLayers.layer)
layer(blocking)("delivery from the IntegrationOutbox in memory, keys blocked", blockingDeliveryContract)
