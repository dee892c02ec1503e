import { Context, type Effect } from "effect"
import type { Instant } from "../domain/Instant.ts"
import type { RealtimeSignal } from "../domain/RealtimeSignal.ts"
import type { Outbox } from "./Outbox.ts"
import type { RowRefused, StoreUnavailable } from "./StoreError.ts"

/** A stored push; its key is the chat. */
export interface PendingSignal {
  readonly id: bigint
  readonly kind: string
  readonly targetKind: string
  readonly chatId: string
  readonly sessionKind: string
  readonly sessionId: string
  readonly signal: string
  readonly headers: Readonly<Record<string, string>>
  readonly attempts: number
  readonly createdAt: Instant
}

/** The outbox of hub pushes: persist, then push (W1, X2). Delivery touches only rows of kind `ConferenceEnded`. */
export class RealtimeOutbox extends Context.Service<
  RealtimeOutbox,
  {
    /** Adds the rows to the open transaction. */
    readonly append: (signals: ReadonlyArray<RealtimeSignal>) => Effect.Effect<void, RowRefused | StoreUnavailable>
    /** Marks at most `limit` pending rows written before the instant as expired: the push has lost its use. Returns how many. */
    readonly expire: (before: Instant, limit: number, at: Instant) => Effect.Effect<number, StoreUnavailable>
  } & Outbox<PendingSignal>
>()("conference-room-reaper/RealtimeOutbox") {}
