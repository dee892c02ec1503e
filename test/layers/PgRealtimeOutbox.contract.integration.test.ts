import { layer } from "@effect/vitest"
import { realtimeOutboxContract } from "../contract/OutboxContract.ts"
import * as PgPorts from "../contract/PgPorts.ts"

layer(PgPorts.layer, { excludeTestServices: true })("RealtimeOutbox on PostgreSQL", realtimeOutboxContract)
