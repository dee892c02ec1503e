/** What a claim takes, the same for both outboxes (X1, X2): chosen by state, in order, nothing of one key overtaking. */
import { assert, type Vitest } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type * as Instant from "../../src/domain/Instant.ts"
import type { DeliveryFailure } from "../../src/services/Outbox.ts"
import { before, microsecondsAfter } from "../support/Sessions.ts"
import type { Draft, Subject } from "./DeliverySubject.ts"
import { asOf, committed, onEmptyTables, type Ports } from "./Fixtures.ts"
import { collectLines, type Line } from "./Observed.ts"

export const written = <Row>(subject: Subject<Row>, drafts: ReadonlyArray<Draft>) => committed(subject.append(drafts))

/** Numbers of the conferences that a claim takes, in its order. */
export const claimed = <Row>(subject: Subject<Row>, limit = 100, at = asOf) =>
  Effect.flatMap(subject.outbox, (outbox) => outbox.claimPending(at, limit)).pipe(
    Effect.map((rows) => rows.map(subject.numberOf))
  )

/** The id of the row about conference number `n`, of those that can be claimed now. */
const idsOf = <Row extends { readonly id: bigint }>(subject: Subject<Row>, numbers: ReadonlyArray<number>) =>
  Effect.flatMap(subject.outbox, (outbox) => outbox.claimPending(asOf, 100)).pipe(
    Effect.map((rows) => rows.filter((row) => numbers.includes(subject.numberOf(row))).map((row) => row.id))
  )

export const deliver = <Row extends { readonly id: bigint }>(
  subject: Subject<Row>,
  numbers: ReadonlyArray<number>,
  at = asOf
) =>
  Effect.gen(function* () {
    const outbox = yield* subject.outbox
    yield* outbox.markDelivered(yield* idsOf(subject, numbers), at)
  })

const refused: Omit<DeliveryFailure, "id"> = { attempts: 1, error: "refused", nextAttemptAt: asOf, parked: false }

export const fail = <Row extends { readonly id: bigint }>(
  subject: Subject<Row>,
  numbers: ReadonlyArray<number>,
  failure: Partial<DeliveryFailure> = {}
) =>
  Effect.gen(function* () {
    const outbox = yield* subject.outbox
    const ids = yield* idsOf(subject, numbers)
    yield* outbox.recordFailures(
      ids.map((id) => ({ ...refused, ...failure, id })),
      asOf
    )
  })

const inAMinute = before(asOf, "-1 minute")

export const claims = <Row extends { readonly id: bigint; readonly attempts: number }>(
  it: Vitest.MethodsNonLive<Ports>,
  subject: Subject<Row>,
  asClaimed: (draft: Draft) => unknown,
  comparable: (row: Row) => unknown
): void => {
  it.effect("claims rows as they were stored, and a repeat is identical (X1)", () =>
    Effect.gen(function* () {
      const outbox = yield* subject.outbox
      const drafts = [{ n: 2 }, { n: 1, createdAt: microsecondsAfter(asOf, 1n) }]
      yield* written(subject, drafts)
      const first = yield* outbox.claimPending(asOf, 10)
      assert.deepStrictEqual(first.map(comparable), drafts.map(asClaimed))
      assert.deepStrictEqual(yield* outbox.claimPending(asOf, 10), first)
    }).pipe(onEmptyTables)
  )

  it.effect("claims the lowest ids first, at most `limit` of them", () =>
    Effect.gen(function* () {
      yield* written(subject, [{ n: 3 }, { n: 1 }])
      yield* written(subject, [{ n: 2 }])
      assert.deepStrictEqual(yield* claimed(subject, 2), [3, 1])
      yield* deliver(subject, [3])
      assert.deepStrictEqual(yield* claimed(subject, 2), [1, 2])
    }).pipe(onEmptyTables)
  )

  it.effect("leaves rows of others alone", () =>
    Effect.gen(function* () {
      yield* written(subject, [{ n: 1, foreign: true }, { n: 2 }])
      assert.deepStrictEqual(yield* claimed(subject), [2])
    }).pipe(onEmptyTables)
  )

  it.effect("finds a row with a lower id that is committed later", () =>
    Effect.gen(function* () {
      const appended = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const slow = yield* Effect.forkChild(
        committed(Effect.all([subject.append([{ n: 1 }]), Deferred.succeed(appended, undefined), Deferred.await(goOn)]))
      )
      yield* Deferred.await(appended)
      yield* written(subject, [{ n: 2 }])
      assert.deepStrictEqual(yield* claimed(subject), [2])
      yield* deliver(subject, [2])
      yield* Deferred.succeed(goOn, undefined)
      yield* Fiber.join(slow)
      assert.deepStrictEqual(yield* claimed(subject), [1])
      const [first, second] = yield* subject.delivery
      assert.isTrue(first !== undefined && second !== undefined && first.id < second.id)
    }).pipe(onEmptyTables)
  )

  it.effect("holds a key up until its refused row's next attempt is due, to the microsecond, and no other key", () =>
    Effect.gen(function* () {
      yield* written(subject, [
        { n: 1, key: 1 },
        { n: 2, key: 2 },
        { n: 3, key: 1 },
        { n: 4, key: 2 }
      ])
      yield* fail(subject, [3], { nextAttemptAt: inAMinute })
      assert.deepStrictEqual(yield* claimed(subject), [1, 2, 4])
      yield* fail(subject, [1], { nextAttemptAt: inAMinute, attempts: 7 })
      assert.deepStrictEqual(yield* claimed(subject), [2, 4])
      assert.deepStrictEqual(yield* claimed(subject, 100, microsecondsAfter(inAMinute, -1n)), [2, 4])
      assert.deepStrictEqual(yield* claimed(subject, 100, inAMinute), [1, 2, 3, 4])
      const outbox = yield* subject.outbox
      assert.deepStrictEqual(
        (yield* outbox.claimPending(inAMinute, 100)).map((row) => row.attempts),
        [7, 0, 1, 0]
      )
    }).pipe(onEmptyTables)
  )

  it.effect("fills a batch from behind the rows that are held up", () =>
    Effect.gen(function* () {
      yield* written(subject, [{ n: 1, key: 1 }, { n: 2, key: 1 }, { n: 3, key: 1 }, { n: 4 }, { n: 5 }])
      yield* fail(subject, [1], { nextAttemptAt: inAMinute })
      assert.deepStrictEqual(yield* claimed(subject, 2), [4, 5])
    }).pipe(onEmptyTables)
  )

  it.effect("parks a row that does not decode, with its error, and claims the others (T4)", () =>
    Effect.gen(function* () {
      const lines: Array<Line> = []
      const bad = [{ traceparent: 1 }, ["traceparent"], "text", 7]
      yield* written(subject, [...bad.map((headers, i) => ({ n: i + 1, headers })), { n: 5 }, { n: 6 }, { n: 7 }])
      assert.deepStrictEqual(yield* Effect.provide(claimed(subject, 2), collectLines(lines)), [5, 6])
      const parked = (yield* subject.delivery).slice(0, 4)
      for (const { attempts, parkedAt, lastError } of parked) {
        assert.deepStrictEqual([attempts, parkedAt], [1, asOf])
        assert.include(lastError, "headers")
      }
      assert.deepStrictEqual(
        lines.map(({ level, annotations }) => [level, annotations.id]),
        parked.map(({ id }) => ["Error", String(id)])
      )
      assert.isTrue((yield* subject.delivery).slice(4).every((row) => row.parkedAt === null))
      assert.deepStrictEqual(yield* claimed(subject), [5, 6, 7])
    }).pipe(onEmptyTables)
  )
}

/** With a parked row, later rows of its key go on or wait (OUTBOX_KEY_POLICY). */
export const keyPolicy = <Row extends { readonly id: bigint }>(
  it: Vitest.MethodsNonLive<Ports>,
  subject: Subject<Row>,
  policy: "park" | "block"
): void => {
  const rows = [
    { n: 1, key: 1 },
    { n: 2, key: 1 },
    { n: 3, key: 1 },
    { n: 4, key: 2 }
  ]

  it.effect(`lets later rows of a parked row's key ${policy === "park" ? "go on" : "wait"}`, () =>
    Effect.gen(function* () {
      yield* written(subject, rows)
      yield* fail(subject, [2], { parked: true })
      assert.deepStrictEqual(yield* claimed(subject), policy === "park" ? [1, 3, 4] : [1, 4])
    }).pipe(onEmptyTables)
  )

  it.effect(`lets them ${policy === "park" ? "go on" : "wait"} in the claim that parks it, too`, () =>
    Effect.gen(function* () {
      yield* written(
        subject,
        rows.map((row) => (row.n === 2 ? { ...row, headers: "text" } : row))
      )
      assert.deepStrictEqual(yield* claimed(subject), policy === "park" ? [1, 3, 4] : [1, 4])
    }).pipe(onEmptyTables)
  )
}

/** For tests that have to name a moment after `asOf`. */
export const later = (micros: bigint): Instant.Instant => microsecondsAfter(asOf, micros)
