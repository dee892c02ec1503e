import { layer } from "@effect/vitest"
import { reaperJournalContract } from "../contract/ReaperJournalContract.ts"
import * as MemoryLayers from "../fakes/MemoryLayers.ts"

layer(MemoryLayers.layer)("ReaperJournal in memory", reaperJournalContract)
