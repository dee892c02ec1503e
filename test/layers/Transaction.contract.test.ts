import { layer } from "@effect/vitest"
import { transactionContract } from "../contract/TransactionContract.ts"
import * as MemoryLayers from "../fakes/MemoryLayers.ts"

layer(MemoryLayers.layer)("Transaction in memory", transactionContract)
