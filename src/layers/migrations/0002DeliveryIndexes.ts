/**
 * Indexes for the dispatchers, each over one state of a row, so that delivered rows, parked ones and those of others cost
 * a poll nothing. Their predicates are, word for word, those of the statements in `PgOutbox`.
 */
import { Effect } from "effect"
import { createIndex, type Index } from "./Index.ts"

const openEvents = "topic = 'pin.messenger.conference-ended.v1' and published_at is null"
const openPushes = "kind = 'ConferenceEnded' and dispatched_at is null and expired_at is null"

const indexes: ReadonlyArray<Index> = [
  // The claim, the number of pending rows and the age of the oldest.
  {
    name: "ix_outbox_messages_pending",
    table: "outbox_messages",
    on: `(id) include (created_at) where ${openEvents} and parked_at is null`
  },
  // Whether an earlier row of the same key holds a row up: only refused ones can.
  {
    name: "ix_outbox_messages_refused",
    table: "outbox_messages",
    on: `(message_key, id) where ${openEvents} and (parked_at is not null or next_attempt_at is not null)`
  },
  {
    name: "ix_outbox_messages_parked",
    table: "outbox_messages",
    on: `(id) where ${openEvents} and parked_at is not null`
  },
  // Retention.
  {
    name: "ix_outbox_messages_published",
    table: "outbox_messages",
    on: "(published_at) where topic = 'pin.messenger.conference-ended.v1' and published_at is not null and parked_at is null"
  },
  {
    name: "ix_realtime_outbox_pending",
    table: "realtime_outbox",
    on: `(id) include (created_at) where ${openPushes} and parked_at is null`
  },
  {
    name: "ix_realtime_outbox_refused",
    table: "realtime_outbox",
    on: `(chat_id, id) where ${openPushes} and (parked_at is not null or next_attempt_at is not null)`
  },
  {
    name: "ix_realtime_outbox_parked",
    table: "realtime_outbox",
    on: `(id) where ${openPushes} and parked_at is not null`
  },
  {
    name: "ix_realtime_outbox_done",
    table: "realtime_outbox",
    on: `(coalesce(dispatched_at, expired_at))
      where kind = 'ConferenceEnded' and coalesce(dispatched_at, expired_at) is not null and parked_at is null`
  }
]

export default Effect.forEach(indexes, createIndex, { discard: true })
