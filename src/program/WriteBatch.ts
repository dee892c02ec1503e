/**
 * Writes a decided batch: transitions, outbox rows, realtime rows and evidence together (W1, W2, W7). What the database
 * refuses for one row is found by halving and left out; the rest of the batch is fixed (T4).
 */
import { Clock, Effect } from "effect"
import * as Closing from "../domain/Closing.ts"
import * as ConferenceEnded from "../domain/ConferenceEnded.ts"
import type { ConferenceId } from "../domain/ConferenceSession.ts"
import type { DomainEvent } from "../domain/DomainEvent.ts"
import * as RealtimeSignal from "../domain/RealtimeSignal.ts"
import { ConferenceRepository, type Scan } from "../services/ConferenceRepository.ts"
import { IntegrationOutbox } from "../services/IntegrationOutbox.ts"
import { RealtimeOutbox } from "../services/RealtimeOutbox.ts"
import { ReaperJournal } from "../services/ReaperJournal.ts"
import { ReaperOptions } from "../services/ReaperOptions.ts"
import type { StoreUnavailable } from "../services/StoreError.ts"
import { Transaction } from "../services/Transaction.ts"
import type { BatchContext, Decided, Poisoned } from "./DecideBatch.ts"

export interface Written {
  readonly closed: ReadonlyArray<DomainEvent>
  readonly poisoned: ReadonlyArray<Poisoned>
}

export const nothing: Written = { closed: [], poisoned: [] }

export const addWritten = (a: Written, b: Written): Written => ({
  closed: [...a.closed, ...b.closed],
  poisoned: [...a.poisoned, ...b.poisoned]
})

/** The row locks are ours since the claim, so what was not written and is still due was not lost to anybody (T4). */
const findSuppressed = Effect.fnUntraced(function* (
  scan: Scan,
  decided: ReadonlyArray<Decided>,
  written: ReadonlySet<ConferenceId>
) {
  const missing = decided.filter(({ event }) => !written.has(event.conferenceId))
  if (missing.length === 0) return []
  const repository = yield* ConferenceRepository
  const suppressed = yield* repository.suppressed(
    scan,
    missing.map(({ event }) => event.conferenceId)
  )
  return missing
    .filter(({ event }) => suppressed.includes(event.conferenceId))
    .map((one) => refused(one, "the database took the update without effect: a trigger or rule suppresses it", true))
})

const refused = ({ event, poisonAttempts }: Decided, error: string, isCertain: boolean): Poisoned => ({
  conferenceId: event.conferenceId,
  attempts: poisonAttempts + 1,
  error,
  isCertain
})

const writeAll = Effect.fnUntraced(function* (context: BatchContext, scan: Scan, decided: ReadonlyArray<Decided>) {
  const repository = yield* ConferenceRepository
  const outbox = yield* IntegrationOutbox
  const realtime = yield* RealtimeOutbox
  const journal = yield* ReaperJournal
  const options = yield* ReaperOptions
  const written = yield* repository.apply(
    scan,
    decided.map(({ event }) => event)
  )
  const won = decided.filter(({ event }) => written.has(event.conferenceId))
  const suppressed = yield* findSuppressed(scan, decided, written)
  yield* outbox.append(
    won.flatMap(({ event, traceparent }) =>
      event._tag === "ConferenceEnded" ? [ConferenceEnded.fromEvent(event, context.jobRunId, traceparent)] : []
    )
  )
  yield* realtime.append(
    won.flatMap(({ event, traceparent }) =>
      event._tag === "ConferenceEnded" || options.provisionFailedSignal
        ? [RealtimeSignal.fromEvent(event, context.jobRunId, traceparent)]
        : []
    )
  )
  yield* journal.appendClosings(won.map(({ event }) => Closing.fromEvent(event, context.jobRunId)))
  return { closed: won.map(({ event }) => event), poisoned: suppressed } satisfies Written
})

type Services = ConferenceRepository | IntegrationOutbox | RealtimeOutbox | ReaperJournal | ReaperOptions | Transaction

/** Runs inside the batch's transaction. A session that changed under the claim is in neither list: a lost race (R9). */
export const write = (
  context: BatchContext,
  scan: Scan,
  decided: ReadonlyArray<Decided>
): Effect.Effect<Written, StoreUnavailable, Services> =>
  Effect.gen(function* () {
    const transaction = yield* Transaction
    const [first] = decided
    if (first === undefined) return nothing
    return yield* transaction.attempt(writeAll(context, scan, decided)).pipe(
      Effect.catchTag("RowRefused", (error) => {
        if (decided.length > 1) {
          const middle = decided.length >> 1
          return Effect.zipWith(
            writeInTime(context, scan, decided.slice(0, middle)),
            writeInTime(context, scan, decided.slice(middle)),
            addWritten
          )
        }
        return Effect.succeed<Written>({ closed: [], poisoned: [refused(first, error.message, error.isCertain)] })
      })
    )
  })

// The search for the refused rows stops in time for the commit of what was found; the rest waits for the next cycle (L4).
const writeInTime: typeof write = (context, scan, decided) =>
  Effect.flatMap(Clock.monotonicTimeNanos, (now) =>
    now > context.softDeadline ? Effect.succeed(nothing) : write(context, scan, decided)
  )
