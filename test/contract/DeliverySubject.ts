/** The two outboxes as the delivery suite sees them: rows that are given by number and key, and what became of them. */
import { Effect } from "effect"
import * as Message from "../../src/domain/ConferenceEnded.ts"
import { ChatId, DealId } from "../../src/domain/ConferenceSession.ts"
import type { Instant } from "../../src/domain/Instant.ts"
import * as Signal from "../../src/domain/RealtimeSignal.ts"
import { IntegrationOutbox, type PendingEvent } from "../../src/services/IntegrationOutbox.ts"
import type { Outbox } from "../../src/services/Outbox.ts"
import { type PendingSignal, RealtimeOutbox } from "../../src/services/RealtimeOutbox.ts"
import type { RowRefused, StoreUnavailable } from "../../src/services/StoreError.ts"
import type { Delivery } from "../fakes/Tables.ts"
import { conferenceId, jobRunId } from "../support/Sessions.ts"
import { asOf, endedEvent, traceparent } from "./Fixtures.ts"
import { Harness } from "./Harness.ts"

/** A row to append. */
export interface Draft {
  /** The conference. */
  readonly n: number
  /** Rows with the same number have the same key; by default each has its own. */
  readonly key?: number
  readonly createdAt?: Instant
  readonly headers?: unknown
  /** Of another topic or kind. */
  readonly foreign?: boolean
}

export interface Subject<Row> {
  readonly outbox: Effect.Effect<Outbox<Row>, never, IntegrationOutbox | RealtimeOutbox>
  /** Adds the rows to the open transaction. */
  readonly append: (
    drafts: ReadonlyArray<Draft>
  ) => Effect.Effect<void, RowRefused | StoreUnavailable, IntegrationOutbox | RealtimeOutbox>
  readonly delivery: Effect.Effect<ReadonlyArray<Delivery>, never, Harness>
  /** The number of the conference that a claimed row is about. */
  readonly numberOf: (row: Row) => number
}

const key = (n: number) => `d1000000-0000-4000-8000-${n.toString(16).padStart(12, "0")}`
const numberIn = (id: string) => Number.parseInt(id.slice(-12), 16)

export const toMessage = ({ n, key: k = n, createdAt = asOf, headers, foreign }: Draft): Message.OutboxMessage => {
  const message = Message.fromEvent({ ...endedEvent(n), dealId: DealId.make(key(k)) }, jobRunId(1), traceparent)
  return {
    ...message,
    createdAt,
    ...(headers === undefined ? {} : { headers: headers as Message.OutboxMessage["headers"] }),
    ...(foreign === true ? { topic: "pin.messenger.message-sent.v1" } : {})
  }
}

export const toSignal = ({ n, key: k = n, createdAt = asOf, headers, foreign }: Draft): Signal.RealtimeSignal => {
  const signal = Signal.fromEvent({ ...endedEvent(n), chatId: ChatId.make(key(k)) }, jobRunId(1), traceparent)
  return {
    ...signal,
    createdAt,
    ...(headers === undefined ? {} : { headers: headers as Signal.RealtimeSignal["headers"] }),
    ...(foreign === true ? { kind: "Typing" as "ConferenceEnded" } : {})
  }
}

export const events: Subject<PendingEvent> = {
  outbox: IntegrationOutbox,
  append: (drafts) => Effect.flatMap(IntegrationOutbox, (outbox) => outbox.append(drafts.map(toMessage))),
  delivery: Effect.flatMap(Harness, (harness) => harness.eventDelivery),
  numberOf: ({ value }) => numberIn((JSON.parse(value) as { ConferenceId: string }).ConferenceId)
}

export const signals: Subject<PendingSignal> = {
  outbox: RealtimeOutbox,
  append: (drafts) => Effect.flatMap(RealtimeOutbox, (outbox) => outbox.append(drafts.map(toSignal))),
  delivery: Effect.flatMap(Harness, (harness) => harness.signalDelivery),
  numberOf: ({ sessionId }) => numberIn(sessionId)
}

/** What a row of `Draft` looks like when it is claimed, but for its id. */
export const claimedMessage = (draft: Draft) => {
  const { messageKey, payload, headers, createdAt } = toMessage(draft)
  return { key: messageKey, payload, headers, attempts: 0, createdAt }
}

export const claimedSignal = (draft: Draft) => ({ ...toSignal(draft), attempts: 0, sessionId: conferenceId(draft.n) })
