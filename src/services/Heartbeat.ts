/**
 * Shown by a dispatcher's loop at each turn and all through its pauses, also while the receiver is away: an outage must
 * not make the process look dead. Goes nowhere unless somebody listens, since where the reaper runs too its ticks tell.
 */
import { Context, Effect } from "effect"

export const Heartbeat = Context.Reference<Effect.Effect<void>>("conference-room-reaper/Heartbeat", {
  defaultValue: () => Effect.void
})
