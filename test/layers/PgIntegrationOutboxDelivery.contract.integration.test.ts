import { layer } from "@effect/vitest"
import { blockingDeliveryContract, integrationDeliveryContract } from "../contract/OutboxDeliveryContract.ts"
import * as PgPorts from "../contract/PgPorts.ts"

const options = { excludeTestServices: true }
layer(PgPorts.layer, options)("delivery from the IntegrationOutbox on PostgreSQL", integrationDeliveryContract)
layer(PgPorts.withKeyPolicy("block"), options)(
  "delivery from the IntegrationOutbox on PostgreSQL, keys blocked",
  blockingDeliveryContract
)
