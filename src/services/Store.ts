import { Context, type Effect } from "effect"
import type { StoreUnavailable } from "./StoreError.ts"

/** The database as a whole. */
export class Store extends Context.Service<
  Store,
  {
    /** Succeeds when the database answers within two seconds. */
    readonly ping: Effect.Effect<void, StoreUnavailable>
  }
>()("conference-room-reaper/Store") {}
