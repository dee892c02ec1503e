import { layer } from "@effect/vitest"
import { integrationOutboxContract } from "../contract/OutboxContract.ts"
import * as PgPorts from "../contract/PgPorts.ts"

layer(PgPorts.layer, { excludeTestServices: true })("IntegrationOutbox on PostgreSQL", integrationOutboxContract)
