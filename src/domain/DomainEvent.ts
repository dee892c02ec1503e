/**
 * The domain events that a transition raises (W5). The outbox row, the realtime row, the evidence and the recorder
 * signal are all made from them.
 */
import type {
  ChatId,
  ConferenceId,
  DealId,
  MediaType,
  Participant,
  Recording,
  TenantId,
  UserId
} from "./ConferenceSession.ts"
import type { Instant } from "./Instant.ts"
import type { Phase, PhaseName } from "./Phase.ts"

/** What decided (W7): the answer to "why was my room closed?". */
export interface Facts {
  readonly phase: PhaseName
  /** EndedAt and UpdatedAt of the session (R4). */
  readonly asOf: Instant
  readonly dueAt: Instant
  readonly windowMillis: number
  readonly lastActivityAt: Instant
  readonly createdAt: Instant
  readonly startedAt: Instant | null
  readonly activeParticipantCount: number
}

/** `Active` -> `Ended` (R1, R3). */
export interface ConferenceEnded {
  readonly _tag: "ConferenceEnded"
  readonly conferenceId: ConferenceId
  readonly chatId: ChatId
  readonly dealId: DealId
  readonly tenantId: TenantId
  readonly status: "Ended"
  readonly endReason: Phase["endReason"]
  readonly mediaType: MediaType
  readonly startedByUserId: UserId
  readonly startedAt: Instant
  readonly durationSeconds: number
  readonly peakParticipantCount: number
  readonly participants: ReadonlyArray<Participant>
  readonly recordings: ReadonlyArray<Recording>
  readonly facts: Facts
}

/** `Provisioning` -> `Failed` (R2): there was no meeting, so there is no integration event (W2). */
interface ConferenceProvisionFailed {
  readonly _tag: "ConferenceProvisionFailed"
  readonly conferenceId: ConferenceId
  readonly chatId: ChatId
  readonly dealId: DealId | null
  readonly tenantId: TenantId
  readonly status: "Failed"
  readonly endReason: Phase["endReason"]
  readonly facts: Facts
}

export type DomainEvent = ConferenceEnded | ConferenceProvisionFailed
