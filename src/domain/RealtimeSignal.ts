/** The row of `messenger.realtime_outbox` that tells a chat's clients of a closed conference (W1, W2). Ids and enums only. */
import { Schema } from "effect"
import { ChatId, ConferenceId, type JobRunId } from "./ConferenceSession.ts"
import type { DomainEvent } from "./DomainEvent.ts"
import type { Instant } from "./Instant.ts"

const fields = {
  kind: Schema.Literal("ConferenceEnded").annotate({
    description: "Also for a conference that did not come up; `signal` tells them apart."
  }),
  targetKind: Schema.Literal("ChatGroup"),
  chatId: ChatId,
  sessionKind: Schema.Literal("Conference"),
  sessionId: ConferenceId,
  signal: Schema.Literals(["Ended", "Failed"])
}

const Row = Schema.Struct(fields)

/** The row as it is pushed to the hub (X2). */
export const HubPush = Schema.Struct({
  id: Schema.Int.annotate({ description: "Names the push: a repeat carries the same id." }),
  ...fields
}).annotate({ title: "hub-push", description: "Tell the clients of this chat that the state of a conference changed." })

export interface RealtimeSignal extends Schema.Schema.Type<typeof Row> {
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
