import { layer } from "@effect/vitest"
import * as PgPorts from "../contract/PgPorts.ts"
import { reaperJournalContract } from "../contract/ReaperJournalContract.ts"

layer(PgPorts.layer, { excludeTestServices: true })("ReaperJournal on PostgreSQL", reaperJournalContract)
