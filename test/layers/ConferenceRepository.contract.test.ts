import { layer } from "@effect/vitest"
import { conferenceRepositoryContract } from "../contract/ConferenceRepositoryContract.ts"
import * as MemoryLayers from "../fakes/MemoryLayers.ts"

layer(MemoryLayers.layer)("ConferenceRepository in memory", conferenceRepositoryContract)
