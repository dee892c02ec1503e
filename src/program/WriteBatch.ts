/**
 * Writes a decided batch: transitions, outbox rows, realtime rows and evidence together (W1, W2, W7). What the database
 * refuses for one row is found by halving and left out; the rest of the batch is fixed (T4).
 */
import { Clock, Effect } from "effect"
import * as Closing from "../domain/Closing.ts"
import * as ConferenceEnded from "../domain/ConferenceEnded.ts"
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
  return won.map(({ event }) => event)
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
      Effect.map((closed): Written => ({ closed, poisoned: [] })),
      Effect.catchTag("RowRefused", (error) => {
        if (decided.length > 1) {
          const middle = decided.length >> 1
          return Effect.zipWith(
            writeInTime(context, scan, decided.slice(0, middle)),
            writeInTime(context, scan, decided.slice(middle)),
            addWritten
          )
        }
        const conferenceId = first.event.conferenceId
        return Effect.succeed<Written>({
          closed: [],
          poisoned: [{ conferenceId, attempts: first.poisonAttempts + 1, error: error.message }]
        })
      })
    )
  })

// The search for the refused rows stops in time for the commit of what was found; the rest waits for the next cycle (L4).
const writeInTime: typeof write = (context, scan, decided) =>
  Effect.flatMap(Clock.monotonicTimeNanos, (now) =>
    now > context.softDeadline ? Effect.succeed(nothing) : write(context, scan, decided)
  )
