import { layer } from "@effect/vitest"
import * as PgPorts from "../contract/PgPorts.ts"
import { transactionContract } from "../contract/TransactionContract.ts"

layer(PgPorts.layer, { excludeTestServices: true })("Transaction on PostgreSQL", transactionContract)
