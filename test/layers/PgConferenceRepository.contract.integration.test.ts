import { layer } from "@effect/vitest"
import { conferenceRepositoryContract } from "../contract/ConferenceRepositoryContract.ts"
import * as PgPorts from "../contract/PgPorts.ts"

layer(PgPorts.layer, { excludeTestServices: true })("ConferenceRepository on PostgreSQL", conferenceRepositoryContract)
