import { layer } from "@effect/vitest"
import { integrationOutboxContract } from "../contract/OutboxContract.ts"
import * as MemoryLayers from "../fakes/MemoryLayers.ts"

layer(MemoryLayers.layer)("IntegrationOutbox in memory", integrationOutboxContract)
