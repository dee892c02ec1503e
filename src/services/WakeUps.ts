import { Context, type Effect } from "effect"

/** Tells a dispatcher that rows may wait for it, so that it need not wait for its next poll. A lost signal costs one poll. */
export class WakeUps extends Context.Service<
  WakeUps,
  {
    /** Waits for the next signal of new event rows. */
    readonly awaitEvents: Effect.Effect<void>
    /** Waits for the next signal of new push rows. */
    readonly awaitSignals: Effect.Effect<void>
  }
>()("conference-room-reaper/WakeUps") {}
