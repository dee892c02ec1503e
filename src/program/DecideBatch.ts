/** Decides a claimed batch, row by row: one bad row is poison and never fails the others (T3, T4). */
import { Effect, type Tracer } from "effect"
import type { ConferenceDetails, ConferenceId, JobRunId } from "../domain/ConferenceSession.ts"
import type { DomainEvent } from "../domain/DomainEvent.ts"
import type * as Instant from "../domain/Instant.ts"
import type { Phase } from "../domain/Phase.ts"
import * as Transition from "../domain/Transition.ts"
import { type ClaimedRow, ConferenceRepository } from "../services/ConferenceRepository.ts"
import { ReaperOptions } from "../services/ReaperOptions.ts"

export interface BatchContext {
  readonly phase: Phase
  readonly jobRunId: JobRunId
  readonly asOf: Instant.Instant
  /** Monotonic nanoseconds after which the batch takes up nothing more, so that it can still commit in time (L4). */
  readonly softDeadline: bigint
  /** Sessions refused by an earlier phase of this cycle: each is tried at most once a cycle (T5). */
  readonly refusedEarlier: ReadonlyArray<ConferenceId>
}

/** One session that was refused. `attempts` counts this refusal too. */
export interface Poisoned {
  readonly conferenceId: ConferenceId
  readonly attempts: number
  readonly error: string
  /** False when the refusal may as well be about every row; the rest of the batch decides. */
  readonly isCertain: boolean
}

/** A decided transition, with the W3C trace context of its item's span. */
export interface Decided {
  readonly event: DomainEvent
  readonly traceparent: string
  readonly poisonAttempts: number
}

const noDetails: ConferenceDetails = { participants: [], recordings: [] }

const traceparentOf = (span: Tracer.Span): string =>
  `00-${span.traceId.padStart(32, "0")}-${span.spanId.padStart(16, "0")}-${span.sampled ? "01" : "00"}`

export const decideAll = Effect.fnUntraced(function* (context: BatchContext, rows: ReadonlyArray<ClaimedRow>) {
  const repository = yield* ConferenceRepository
  const options = yield* ReaperOptions
  const details = context.phase.to === "Ended" ? yield* repository.details(rows.map((row) => row.id)) : undefined
  const decided: Array<Decided> = []
  const poisoned: Array<Poisoned> = []

  const poison = (row: ClaimedRow, error: Error) =>
    Effect.sync(() => {
      poisoned.push({ conferenceId: row.id, attempts: row.poisonAttempts + 1, error: error.message, isCertain: true })
    })
  const decide = (row: ClaimedRow) => {
    const attributes = { conferenceId: row.id, phase: context.phase.name }
    return Effect.useSpan("reaper.item", { attributes }, (span) =>
      Effect.gen(function* () {
        const session = yield* Effect.fromResult(row.session)
        span.attribute("dealTenantId", session.tenantId)
        const found = details?.get(row.id)
        const facts = found === undefined ? noDetails : yield* Effect.fromResult(found)
        const event = yield* Effect.fromResult(Transition.decide(context.phase, options, context.asOf, session, facts))
        decided.push({ event, traceparent: traceparentOf(span), poisonAttempts: row.poisonAttempts })
      }).pipe(
        Effect.catchTags({
          MalformedRow: (error) => poison(row, error),
          TransitionRejected: (error) => poison(row, error)
        })
      )
    )
  }

  yield* Effect.forEach(rows, decide, { discard: true })
  return { decided, poisoned }
})
