import { Context, type Effect } from "effect"
import type { Closing } from "../domain/Closing.ts"
import type { CycleSummary } from "../domain/CycleSummary.ts"
import type { Instant } from "../domain/Instant.ts"
import type { RowRefused, StoreUnavailable } from "./StoreError.ts"

/** What the worker writes about itself: the evidence of each closing (W7) and the history of runs. */
export class ReaperJournal extends Context.Service<
  ReaperJournal,
  {
    /** Adds evidence to the open transaction; one row for each conference, for ever. */
    readonly appendClosings: (closings: ReadonlyArray<Closing>) => Effect.Effect<void, RowRefused | StoreUnavailable>
    /** Keeps one cycle's summary under the instance's name. */
    readonly recordRun: (summary: CycleSummary, instance: string) => Effect.Effect<void, StoreUnavailable>
    /**
     * Removes, a bounded number at a time, evidence older than `closingsBefore` and all but the newest 10 000 runs; and
     * the poison records of sessions that others have closed.
     */
    readonly prune: (closingsBefore: Instant) => Effect.Effect<void, StoreUnavailable>
  }
>()("conference-room-reaper/ReaperJournal") {}
