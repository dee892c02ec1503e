import { Context, type Effect } from "effect"
import type { OutboxMessage } from "../domain/ConferenceEnded.ts"
import type { Instant } from "../domain/Instant.ts"
import type { Outbox } from "./Outbox.ts"
import type { RowRefused, StoreUnavailable } from "./StoreError.ts"

/** A row as it goes out: exactly what was stored, so that a repeat is byte-identical. */
export interface PendingEvent {
  readonly id: bigint
  readonly key: string
  /** The payload as JSON text. */
  readonly value: string
  readonly headers: Readonly<Record<string, string>>
  readonly attempts: number
  readonly createdAt: Instant
}

/** The transactional outbox of integration events (W1, X1). Delivery touches only rows of our own topic. */
export class IntegrationOutbox extends Context.Service<
  IntegrationOutbox,
  {
    /** Adds the rows to the open transaction; a second event of one conference is refused (W6). */
    readonly append: (messages: ReadonlyArray<OutboxMessage>) => Effect.Effect<void, RowRefused | StoreUnavailable>
  } & Outbox<PendingEvent>
>()("conference-room-reaper/IntegrationOutbox") {}
