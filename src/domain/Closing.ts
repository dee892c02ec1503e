/** The evidence of one transition (W7): a row of `messenger.conference_reaper_closings`. It outlives the outbox. */
import * as Message from "./ConferenceEnded.ts"
import type { ConferenceId, JobRunId } from "./ConferenceSession.ts"
import type { DomainEvent } from "./DomainEvent.ts"
import * as Instant from "./Instant.ts"
import type { PhaseName } from "./Phase.ts"

export interface Closing {
  readonly conferenceId: ConferenceId
  readonly phase: PhaseName
  readonly status: "Ended" | "Failed"
  readonly endReason: string
  readonly asOf: Instant.Instant
  readonly dueAt: Instant.Instant
  readonly jobRunId: JobRunId
  /** Null where there is no integration event (W2). */
  readonly messageId: string | null
  /** The facts that decided, as JSON: instants ISO 8601 UTC, the window in milliseconds. */
  readonly evidence: Readonly<Record<string, string | number | null>>
}

export const fromEvent = (event: DomainEvent, jobRunId: JobRunId): Closing => {
  const { facts } = event
  return {
    conferenceId: event.conferenceId,
    phase: facts.phase,
    status: event.status,
    endReason: event.endReason,
    asOf: facts.asOf,
    dueAt: facts.dueAt,
    jobRunId,
    messageId: event._tag === "ConferenceEnded" ? Message.messageId(event.conferenceId) : null,
    evidence: {
      lastActivityAt: Instant.format(facts.lastActivityAt),
      createdAt: Instant.format(facts.createdAt),
      startedAt: facts.startedAt === null ? null : Instant.format(facts.startedAt),
      activeParticipantCount: facts.activeParticipantCount,
      windowMillis: facts.windowMillis
    }
  }
}
