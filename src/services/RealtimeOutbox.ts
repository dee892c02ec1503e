import { Context, type Effect } from "effect"
import type { RealtimeSignal } from "../domain/RealtimeSignal.ts"
import type { RowRefused, StoreUnavailable } from "./StoreError.ts"

/** The outbox of hub pushes: persist, then push (W1, X2). */
export class RealtimeOutbox extends Context.Service<
  RealtimeOutbox,
  {
    /** Adds the rows to the open transaction. */
    readonly append: (signals: ReadonlyArray<RealtimeSignal>) => Effect.Effect<void, RowRefused | StoreUnavailable>
  }
>()("conference-room-reaper/RealtimeOutbox") {}
