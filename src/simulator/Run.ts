/**
 * Who is who in one run. All ids are derived from a fresh run id, so that simulators side by side, or the same seed twice,
 * never meet in one database. A run's rooms are those of its tenants.
 */
import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { v5 as uuidv5 } from "uuid"

const tenantCount = 5
// Consecutive conferences share a deal, so that the order of one key's events means something.
const conferencesPerDeal = 3

export interface Run {
  readonly id: string
  readonly tenantIds: ReadonlyArray<string>
  readonly conferenceId: (number: number) => string
  readonly chatId: (number: number) => string
  readonly dealId: (number: number) => string
  readonly tenantId: (number: number) => string
  readonly userId: (number: number, user: number) => string
  readonly recordingId: (number: number, recording: number) => string
}

export const fromId = (id: string): Run => {
  const named = (name: string) => uuidv5(name, id)
  // Three conferences of one deal belong to one tenant.
  const deal = (number: number) => Math.floor(number / conferencesPerDeal)
  const tenant = (number: number) => named(`tenant:${number % tenantCount}`)
  return {
    id,
    tenantIds: Array.from({ length: tenantCount }, (_, number) => tenant(number)),
    conferenceId: (number) => named(`conference:${number}`),
    chatId: (number) => named(`chat:${deal(number)}`),
    dealId: (number) => named(`deal:${deal(number)}`),
    tenantId: (number) => tenant(deal(number)),
    userId: (number, user) => named(`user:${number}:${user}`),
    recordingId: (number, recording) => named(`recording:${number}:${recording}`)
  }
}

export const fresh: Effect.Effect<Run> = Effect.sync(() => fromId(randomUUID()))
