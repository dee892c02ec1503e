/**
 * One phase of one cycle: claim, decide, write, all in one transaction (T1). Poison is excluded, recorded and topped up
 * from behind (T4, T5); a session that changed under the claim is a lost race and no event (R9).
 */
import { Clock, Effect } from "effect"
import type { ConferenceId } from "../domain/ConferenceSession.ts"
import type { DomainEvent } from "../domain/DomainEvent.ts"
import * as Instant from "../domain/Instant.ts"
import { pauseAfter } from "../domain/Poison.ts"
import { ConferenceRepository, type Scan } from "../services/ConferenceRepository.ts"
import { ReaperOptions } from "../services/ReaperOptions.ts"
import { StoreUnavailable } from "../services/StoreError.ts"
import { Transaction } from "../services/Transaction.ts"
import { type BatchContext, decideAll, type Poisoned } from "./DecideBatch.ts"
import { addWritten, nothing, type Written, write } from "./WriteBatch.ts"

export interface BatchResult {
  readonly closed: ReadonlyArray<DomainEvent>
  readonly poisoned: ReadonlyArray<Poisoned>
  readonly skippedLocked: number
}

const recordPoison = Effect.fnUntraced(function* (scan: Scan, poisoned: ReadonlyArray<Poisoned>) {
  if (poisoned.length === 0) return
  const repository = yield* ConferenceRepository
  const options = yield* ReaperOptions
  yield* repository.recordPoison(
    scan,
    poisoned.map(({ conferenceId, attempts, error }) => ({
      conferenceId,
      attempts,
      lastError: error,
      nextAttemptAt: Instant.plus(scan.asOf, pauseAfter(attempts, options.pollingInterval))
    }))
  )
})

/** When every row is refused, and with a code that does not speak of rows, it is the database that refuses (T6). */
const failWhenNothingIsTaken = ({ closed, poisoned }: Written) => {
  const [first] = poisoned
  const isDatabase = closed.length === 0 && poisoned.every(({ attempts, isCertain }) => !isCertain && attempts === 1)
  return first !== undefined && isDatabase
    ? Effect.fail(new StoreUnavailable({ operation: "write", reason: first.error, isRetryable: true }))
    : Effect.void
}

/** The body of the batch's transaction: at most BatchSize transitions, each session tried once. */
const closeDue = Effect.fnUntraced(function* (context: BatchContext) {
  const repository = yield* ConferenceRepository
  const options = yield* ReaperOptions
  const scan: Scan = {
    phase: context.phase,
    asOf: context.asOf,
    cutoff: Instant.minus(context.asOf, context.phase.window(options))
  }
  const tried: Array<ConferenceId> = [...context.refusedEarlier]
  let total = nothing
  let batchIsFull = false
  while (true) {
    const room = options.batchSize - total.closed.length
    const rows = yield* repository.claim(scan, room, tried)
    batchIsFull = rows.length === room
    tried.push(...rows.map((row) => row.id))
    const { decided, poisoned } = yield* decideAll(context, rows)
    const written = addWritten({ closed: [], poisoned }, yield* write(context, scan, decided))
    total = addWritten(total, written)
    // Topped up only for poison (T5): whatever else stopped this claim stops the next one too.
    const outOfTime = (yield* Clock.monotonicTimeNanos) > context.softDeadline
    if (written.poisoned.length === 0 || total.closed.length >= options.batchSize || outOfTime) break
  }
  yield* failWhenNothingIsTaken(total)
  yield* recordPoison(scan, total.poisoned)
  const skippedLocked = yield* repository.countSkippedLocked(scan, tried, batchIsFull)
  const selected = tried.length - context.refusedEarlier.length
  const log = selected === 0 ? Effect.logDebug : Effect.logInfo
  yield* log("batch selected").pipe(Effect.annotateLogs({ phase: context.phase.name, count: selected }))
  return { ...total, skippedLocked } satisfies BatchResult
})

/**
 * Runs the batch of one phase. `onCommitted` hears of the result exactly when it is fixed. Fails with
 * `StoreUnavailable` when the whole batch was rolled back.
 */
export const run = <R>(context: BatchContext, onCommitted: (result: BatchResult) => Effect.Effect<void, never, R>) =>
  Effect.gen(function* () {
    const transaction = yield* Transaction
    return yield* transaction.run(closeDue(context), onCommitted)
  }).pipe(Effect.withSpan("reaper.batch", { attributes: { phase: context.phase.name } }))
