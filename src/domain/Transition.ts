/**
 * The guard of every transition (T3): whether a phase may close a session at `asOf`, and the domain event that says so
 * (W5). Pure: the whole predicate of the phase again, and the invariants that the SQL cannot promise.
 */
import { Duration, Result, Schema } from "effect"
import type { ConferenceDetails, ConferenceSession } from "./ConferenceSession.ts"
import { ConferenceId } from "./ConferenceSession.ts"
import type { DomainEvent, Facts } from "./DomainEvent.ts"
import * as Instant from "./Instant.ts"
import { type Phase, PhaseName, type Windows } from "./Phase.ts"

/** A session whose transition the guard refuses: poison (T4). `reason` names the invariant. */
export class TransitionRejected extends Schema.TaggedError<TransitionRejected>()("TransitionRejected", {
  conferenceId: ConferenceId,
  phase: PhaseName,
  reason: Schema.String
}) {
  override get message(): string {
    return this.reason
  }
}

// `duration_seconds` is a 32-bit integer column; no meeting lasts 68 years.
const maxDurationSeconds = 2_147_483_647

/**
 * Decides one session. `details` are the roster and the recordings read under the session's row lock; a phase that
 * ends in `Failed` needs none.
 */
export const decide = (
  phase: Phase,
  windows: Windows,
  asOf: Instant.Instant,
  session: ConferenceSession,
  details: ConferenceDetails
): Result.Result<DomainEvent, TransitionRejected> => {
  const refuse = (reason: string) =>
    Result.fail(new TransitionRejected({ conferenceId: session.id, phase: phase.name, reason }))
  const window = phase.window(windows)
  const dueAt = Instant.plus(session[phase.since], window)

  if (session.status !== phase.from) return refuse(`status is ${session.status}, not ${phase.from}`)
  if (phase.requiresEmpty && session.activeParticipantCount !== 0) {
    return refuse(`active_participant_count is ${session.activeParticipantCount}, not 0`)
  }
  if (dueAt > asOf) return refuse(`due only at ${Instant.format(dueAt)}`)

  const facts: Facts = {
    phase: phase.name,
    asOf,
    dueAt,
    windowMillis: Duration.toMillis(window),
    lastActivityAt: session.lastActivityAt,
    createdAt: session.createdAt,
    startedAt: session.startedAt,
    activeParticipantCount: session.activeParticipantCount
  }
  if (phase.to === "Failed") {
    return Result.succeed({
      _tag: "ConferenceProvisionFailed",
      conferenceId: session.id,
      chatId: session.chatId,
      dealId: session.dealId,
      tenantId: session.tenantId,
      status: "Failed",
      endReason: phase.endReason,
      facts
    })
  }
  if (session.dealId === null) return refuse("deal_id is missing: the event would have no key")
  if (session.startedAt === null) return refuse("started_at is missing in an Active session")
  if (session.startedAt > asOf) {
    return refuse(`started_at ${Instant.format(session.startedAt)} is after AsOf ${Instant.format(asOf)}`)
  }
  const durationSeconds = Instant.wholeSecondsBetween(session.startedAt, asOf)
  if (durationSeconds > maxDurationSeconds) return refuse(`duration of ${durationSeconds} s does not fit its column`)
  return Result.succeed({
    _tag: "ConferenceEnded",
    conferenceId: session.id,
    chatId: session.chatId,
    dealId: session.dealId,
    tenantId: session.tenantId,
    status: "Ended",
    endReason: phase.endReason,
    mediaType: session.mediaType,
    startedByUserId: session.startedByUserId,
    startedAt: session.startedAt,
    durationSeconds,
    peakParticipantCount: session.peakParticipantCount,
    participants: details.participants,
    recordings: details.recordings,
    facts
  })
}
