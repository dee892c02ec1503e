/** All that `ConferenceRepository` promises, in five parts. */
import type { Vitest } from "@effect/vitest"
import { applyContract } from "./ApplyContract.ts"
import { claimContract } from "./ClaimContract.ts"
import { countsContract } from "./CountsContract.ts"
import { detailsContract } from "./DetailsContract.ts"
import type { Ports } from "./Fixtures.ts"
import { poisonContract } from "./PoisonContract.ts"

export const conferenceRepositoryContract = (it: Vitest.MethodsNonLive<Ports>): void => {
  claimContract(it)
  applyContract(it)
  poisonContract(it)
  countsContract(it)
  detailsContract(it)
}
