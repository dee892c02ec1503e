import { Context, type Effect } from "effect"
import type { OutboxMessage } from "../domain/ConferenceEnded.ts"
import type { RowRefused, StoreUnavailable } from "./StoreError.ts"

/** The transactional outbox of integration events (W1). */
export class IntegrationOutbox extends Context.Service<
  IntegrationOutbox,
  {
    /** Adds the rows to the open transaction; a second event of one conference is refused (W6). */
    readonly append: (messages: ReadonlyArray<OutboxMessage>) => Effect.Effect<void, RowRefused | StoreUnavailable>
  }
>()("conference-room-reaper/IntegrationOutbox") {}
