import { layer } from "@effect/vitest"
import { realtimeDeliveryContract } from "../contract/OutboxDeliveryContract.ts"
import * as PgPorts from "../contract/PgPorts.ts"

layer(PgPorts.layer, { excludeTestServices: true })(
  "delivery from the RealtimeOutbox on PostgreSQL",
  realtimeDeliveryContract
)
