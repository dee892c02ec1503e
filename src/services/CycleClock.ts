import { Context, type Effect } from "effect"
import type { Instant } from "../domain/Instant.ts"

/** The only source of time that decides (L6). */
export class CycleClock extends Context.Service<
  CycleClock,
  {
    /** The system's time now; a cycle reads it once. */
    readonly asOf: Effect.Effect<Instant>
  }
>()("conference-room-reaper/CycleClock") {}
