/**
 * One send of event rows and the record of its results, as one step that no interruption divides: a send that was begun
 * may publish whatever we do, so its acks are waited for and marked (X1). A process killed in between sends the same
 * bytes again.
 */
import { Clock, Effect, Exit, type Tracer } from "effect"
import { EventPublisher, type PublishResult } from "../services/EventPublisher.ts"
import { IntegrationOutbox, type PendingEvent } from "../services/IntegrationOutbox.ts"
import * as DeliveryRecord from "./DeliveryRecord.ts"
import type { Trouble } from "./Outage.ts"
import * as RowTrace from "./RowTrace.ts"

/** What became of one send. */
interface Sent {
  readonly delivered: number
  readonly trouble: Trouble | null
  /** Refused; of several rows the broker does not tell which one it meant. */
  readonly rejected: ReadonlyArray<PendingEvent>
}

const unanswered: PublishResult = { outcome: "unavailable", reason: "the publisher gave no result for the row" }

const describe = (row: PendingEvent) => ({
  outboxId: String(row.id),
  messageId: row.headers["message-id"],
  key: row.key,
  ...RowTrace.correlation(row.headers)
})

/** One span for each row, in the trace of its room, linked to the span of the send that carries it. */
const startSpans = Effect.fnUntraced(function* (rows: ReadonlyArray<PendingEvent>) {
  const span = yield* Effect.orDie(Effect.currentSpan)
  return yield* Effect.forEach(rows, (row) =>
    Effect.makeSpan("outbox.publish", {
      ...RowTrace.parentOf(row.headers),
      kind: "producer",
      links: [{ span, attributes: {} }],
      attributes: describe(row)
    })
  )
})

const endSpans = (spans: ReadonlyArray<Tracer.Span>, results: Exit.Exit<ReadonlyArray<PublishResult>>) =>
  Effect.map(Clock.currentTimeNanos, (now) => {
    for (const [i, span] of spans.entries()) {
      const { outcome, reason } = (Exit.isSuccess(results) && results.value[i]) || unanswered
      span.attribute("outcome", outcome)
      span.end(now, outcome === "acked" ? Exit.void : Exit.fail(reason))
    }
  })

const publish = Effect.fnUntraced(
  function* (rows: ReadonlyArray<PendingEvent>) {
    const publisher = yield* EventPublisher
    const spans = yield* startSpans(rows)
    const results = yield* publisher.publish(rows).pipe(Effect.onExit((exit) => endSpans(spans, exit)))
    return rows.map((row, i) => ({ row, ...(results[i] ?? unanswered) }))
  },
  (effect, rows) => Effect.withSpan(effect, "outbox.send", { attributes: { rows: rows.length } })
)

const troubleOf = (results: ReadonlyArray<PublishResult>): Trouble | null => {
  for (const kind of ["misconfigured", "unavailable"] as const) {
    const found = results.find((result) => result.outcome === kind)
    if (found !== undefined) return { kind, reason: found.reason }
  }
  return null
}

export const send = Effect.fnUntraced(function* (rows: ReadonlyArray<PendingEvent>) {
  const ledger = { name: "outbox", outbox: yield* IntegrationOutbox, describe } as const
  const results = yield* publish(rows)
  const rowsThat = (outcome: PublishResult["outcome"]) =>
    results.filter((result) => result.outcome === outcome).map(({ row }) => row)
  const acked = rowsThat("acked")
  yield* DeliveryRecord.delivered(ledger, acked)
  const [first] = results
  if (results.length === 1 && first?.outcome === "rejected")
    yield* DeliveryRecord.refused(ledger, first.row, first.reason)
  return { delivered: acked.length, trouble: troubleOf(results), rejected: rowsThat("rejected") } satisfies Sent
}, Effect.uninterruptible)
