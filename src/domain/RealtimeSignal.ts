/** The row of `messenger.realtime_outbox` that tells a chat's clients of a closed conference (W1, W2). Ids and enums only. */
import type { ChatId, ConferenceId, JobRunId } from "./ConferenceSession.ts"
import type { DomainEvent } from "./DomainEvent.ts"
import type { Instant } from "./Instant.ts"

export interface RealtimeSignal {
  /** `ConferenceEnded` for a failed provision too; `signal` tells them apart. */
  readonly kind: "ConferenceEnded"
  readonly targetKind: "ChatGroup"
  readonly chatId: ChatId
  readonly sessionKind: "Conference"
  readonly sessionId: ConferenceId
  readonly signal: "Ended" | "Failed"
  readonly headers: Readonly<Record<string, string>>
  /** AsOf of the cycle that wrote it. */
  readonly createdAt: Instant
}

export const fromEvent = (event: DomainEvent, jobRunId: JobRunId, traceparent: string): RealtimeSignal => ({
  kind: "ConferenceEnded",
  targetKind: "ChatGroup",
  chatId: event.chatId,
  sessionKind: "Conference",
  sessionId: event.conferenceId,
  signal: event.status,
  headers: { "correlation-id": jobRunId, traceparent },
  createdAt: event.facts.asOf
})
