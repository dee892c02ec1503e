/**
 * What became of rows, written to their outbox, counted and said: taken by the receiver, or refused for their content.
 * A refused row is tried again at growing distance, then parked with its error.
 */
import { Duration, Effect } from "effect"
import * as Instant from "../domain/Instant.ts"
import { CycleClock } from "../services/CycleClock.ts"
import type { DeliveryName } from "../services/DeliveryHealth.ts"
import { DeliveryOptions } from "../services/DeliveryOptions.ts"
import type { DeliveryFailure, Outbox } from "../services/Outbox.ts"
import * as DeliveryMetrics from "./DeliveryMetrics.ts"
import { inTime } from "./InTime.ts"

interface Row {
  readonly id: bigint
  readonly attempts: number
  readonly createdAt: Instant.Instant
}

export interface Ledger<R extends Row> {
  readonly name: DeliveryName
  readonly outbox: Outbox<R>
  /** Names the row in logs and spans. */
  readonly describe: (row: R) => Readonly<Record<string, unknown>>
}

/** The marks come first: whatever is wrong with metrics or logs, what was taken is not sent again. */
export const delivered = Effect.fnUntraced(function* <R extends Row>(ledger: Ledger<R>, rows: ReadonlyArray<R>) {
  if (rows.length === 0) return
  const at = yield* (yield* CycleClock).asOf
  yield* inTime(
    "mark delivered",
    ledger.outbox.markDelivered(
      rows.map((row) => row.id),
      at
    )
  )
  yield* Effect.forEach(
    rows,
    (row) =>
      DeliveryMetrics.countPublished(ledger.name, row.createdAt, at).pipe(
        Effect.andThen(Effect.logDebug(`${ledger.name} row delivered`).pipe(Effect.annotateLogs(ledger.describe(row)))),
        Effect.ignoreCause
      ),
    { discard: true }
  )
})

const firstWait = Duration.seconds(30)
const longestWait = Duration.hours(1)

const refusalOf = (row: Row, reason: string, at: Instant.Instant, maxAttempts: number): DeliveryFailure => {
  const attempts = row.attempts + 1
  const wait = Duration.min(Duration.times(firstWait, 2 ** (attempts - 1)), longestWait)
  return {
    id: row.id,
    attempts,
    error: reason,
    nextAttemptAt: Instant.plus(at, wait),
    parked: attempts >= maxAttempts
  }
}

/** Puts rows off for a while, no attempt counted: the receiver cannot take them now, though it takes others. */
export const deferred = Effect.fnUntraced(function* <R extends Row>(
  ledger: Ledger<R>,
  rows: ReadonlyArray<R>,
  reason: string
) {
  const at = yield* (yield* CycleClock).asOf
  const nextAttemptAt = Instant.plus(at, firstWait)
  const putOff = rows.map(({ id, attempts }) => ({ id, attempts, error: reason, nextAttemptAt, parked: false }))
  yield* inTime("record failures", ledger.outbox.recordFailures(putOff, at))
  for (const row of rows) {
    yield* DeliveryMetrics.countFailure(ledger.name, "unavailable")
    yield* Effect.logWarning(`${ledger.name} row put off, the receiver takes others`).pipe(
      Effect.annotateLogs({ ...ledger.describe(row), reason })
    )
  }
})

/** One more refusal of the row, said at ERROR: it needs somebody, and there are at most `maxAttempts` of it. */
export const refused = Effect.fnUntraced(function* <R extends Row>(ledger: Ledger<R>, row: R, reason: string) {
  const { maxAttempts } = yield* DeliveryOptions
  const at = yield* (yield* CycleClock).asOf
  const failure = refusalOf(row, reason, at, maxAttempts)
  yield* inTime("record failures", ledger.outbox.recordFailures([failure], at))
  const { attempts, nextAttemptAt, parked } = failure
  yield* DeliveryMetrics.countFailure(ledger.name, "rejected").pipe(
    Effect.andThen(Effect.logError(`${ledger.name} row ${parked ? "parked" : "refused"}`)),
    Effect.annotateLogs({
      ...ledger.describe(row),
      attempts,
      reason,
      ...(parked ? {} : { nextAttemptAt: Instant.format(nextAttemptAt) })
    }),
    Effect.ignoreCause
  )
})
