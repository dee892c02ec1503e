/** Delivery out of the two outboxes (X1, X2): the same suite for both, in memory and on PostgreSQL. */
import { assert, type Vitest } from "@effect/vitest"
import { Effect } from "effect"
import { RealtimeOutbox } from "../../src/services/RealtimeOutbox.ts"
import { claimedMessage, claimedSignal, events, type Subject, signals } from "./DeliverySubject.ts"
import { asOf, onEmptyTables, type Ports } from "./Fixtures.ts"
import { claimed, claims, deliver, fail, keyPolicy, later, written } from "./OutboxClaimContract.ts"

type It = Vitest.MethodsNonLive<Ports>
type AnyRow = { readonly id: bigint }

const marks = <Row extends AnyRow>(it: It, subject: Subject<Row>): void => {
  it.effect("marks rows as delivered once, and keeps the first moment", () =>
    Effect.gen(function* () {
      const outbox = yield* subject.outbox
      yield* written(subject, [{ n: 1 }, { n: 2 }, { n: 3 }])
      const ids = (yield* subject.delivery).map((row) => row.id)
      yield* outbox.markDelivered(ids.slice(0, 2), asOf)
      yield* outbox.markDelivered(ids.slice(1), later(5n))
      yield* outbox.markDelivered([], later(6n))
      assert.deepStrictEqual(
        (yield* subject.delivery).map((row) => row.deliveredAt),
        [asOf, asOf, later(5n)]
      )
      assert.deepStrictEqual(yield* claimed(subject), [])
    }).pipe(onEmptyTables)
  )

  it.effect("marks no row of others", () =>
    Effect.gen(function* () {
      const outbox = yield* subject.outbox
      yield* written(subject, [{ n: 1, foreign: true }])
      const ids = (yield* subject.delivery).map((row) => row.id)
      yield* outbox.markDelivered(ids, asOf)
      yield* outbox.recordFailures(
        ids.map((id) => ({ id, attempts: 9, error: "no", nextAttemptAt: asOf, parked: true })),
        asOf
      )
      assert.deepInclude((yield* subject.delivery)[0], { deliveredAt: null, parkedAt: null, attempts: 0 })
    }).pipe(onEmptyTables)
  )

  it.effect("keeps a refusal with its error and its next attempt", () =>
    Effect.gen(function* () {
      yield* written(subject, [{ n: 1 }, { n: 2 }])
      yield* fail(subject, [1], { attempts: 3, error: "too large", nextAttemptAt: later(7n) })
      yield* fail(subject, [2], { attempts: 5, error: "half \ud83d and \0", parked: true })
      const [first, second] = yield* subject.delivery
      const refusal = { attempts: 3, lastError: "too large", nextAttemptAt: later(7n), parkedAt: null }
      assert.deepInclude(first, { ...refusal, deliveredAt: null })
      assert.deepInclude(second, { attempts: 5, lastError: "half \ufffd and \ufffd", parkedAt: asOf })
    }).pipe(onEmptyTables)
  )

  it.effect("leaves a delivered row as it is when a refusal of it comes late", () =>
    Effect.gen(function* () {
      const outbox = yield* subject.outbox
      yield* written(subject, [{ n: 1 }])
      const [id = 0n] = (yield* subject.delivery).map((row) => row.id)
      yield* outbox.markDelivered([id], asOf)
      yield* outbox.recordFailures([{ id, attempts: 1, error: "late", nextAttemptAt: asOf, parked: true }], asOf)
      assert.deepInclude((yield* subject.delivery)[0], { deliveredAt: asOf, parkedAt: null, lastError: null })
    }).pipe(onEmptyTables)
  )

  it.effect("takes a parked row that was delivered after all as delivered", () =>
    Effect.gen(function* () {
      const outbox = yield* subject.outbox
      yield* written(subject, [{ n: 1 }])
      const ids = (yield* subject.delivery).map((row) => row.id)
      yield* fail(subject, [1], { parked: true })
      yield* outbox.markDelivered(ids, asOf)
      assert.deepInclude((yield* subject.delivery)[0], { deliveredAt: asOf, parkedAt: null })
      assert.deepInclude(yield* outbox.status, { pending: 0, parked: 0 })
    }).pipe(onEmptyTables)
  )
}

const upkeep = <Row extends AnyRow>(it: It, subject: Subject<Row>): void => {
  it.effect("prunes what was delivered before the moment, at most `limit` rows, and nothing else", () =>
    Effect.gen(function* () {
      const outbox = yield* subject.outbox
      yield* written(
        subject,
        [1, 2, 3, 4, 5, 6].map((n) => ({ n }))
      )
      yield* written(subject, [{ n: 7, foreign: true }])
      const ids = (yield* subject.delivery).map((row) => row.id)
      yield* deliver(subject, [1, 2, 3])
      yield* deliver(subject, [4], later(1n))
      yield* fail(subject, [5], { parked: true })
      assert.strictEqual(yield* outbox.pruneDelivered(asOf, 10), 0)
      assert.strictEqual(yield* outbox.pruneDelivered(later(1n), 2), 2)
      assert.strictEqual(yield* outbox.pruneDelivered(later(1n), 2), 1)
      assert.strictEqual(yield* outbox.pruneDelivered(later(1n), 2), 0)
      assert.deepStrictEqual(
        (yield* subject.delivery).map((row) => row.id),
        ids.slice(3)
      )
    }).pipe(onEmptyTables)
  )

  it.effect("counts pending and parked rows and tells the age of the oldest pending one", () =>
    Effect.gen(function* () {
      const outbox = yield* subject.outbox
      assert.deepStrictEqual(yield* outbox.status, { pending: 0, oldestPendingAt: null, parked: 0 })
      yield* written(subject, [
        { n: 1, createdAt: later(-9n) },
        { n: 2, createdAt: later(4n) },
        { n: 3, createdAt: later(3n) },
        { n: 4, createdAt: later(-8n) },
        { n: 5, createdAt: later(-9n), foreign: true }
      ])
      yield* deliver(subject, [1])
      yield* fail(subject, [4], { parked: true })
      yield* fail(subject, [2], { nextAttemptAt: later(60_000_000n) })
      assert.deepStrictEqual(yield* outbox.status, { pending: 2, oldestPendingAt: later(3n), parked: 1 })
    }).pipe(onEmptyTables)
  )
}

const expiry = (it: It): void => {
  it.effect("expires old pending pushes, at most `limit`, then neither claims nor keeps them (X2)", () =>
    Effect.gen(function* () {
      const outbox = yield* RealtimeOutbox
      yield* written(signals, [
        ...[1, 2, 3, 4].map((n) => ({ n, createdAt: later(-1n) })),
        { n: 5 },
        { n: 6, createdAt: later(-1n), foreign: true }
      ])
      yield* deliver(signals, [1])
      yield* fail(signals, [2], { parked: true })
      assert.strictEqual(yield* outbox.expire(asOf, 1, later(5n)), 1)
      assert.strictEqual(yield* outbox.expire(asOf, 9, later(6n)), 1)
      assert.strictEqual(yield* outbox.expire(asOf, 9, later(7n)), 0)
      assert.deepStrictEqual(
        (yield* signals.delivery).map((row) => row.expiredAt),
        [null, null, later(5n), later(6n), null, null]
      )
      assert.deepStrictEqual(yield* claimed(signals), [5])
      assert.deepInclude(yield* outbox.status, { pending: 1, parked: 1 })
      assert.strictEqual(yield* outbox.pruneDelivered(later(6n), 9), 2)
      assert.strictEqual((yield* signals.delivery).length, 4)
    }).pipe(onEmptyTables)
  )
}

export const integrationDeliveryContract = (it: It): void => {
  claims(it, events, claimedMessage, ({ id: _, value, ...row }) => ({ ...row, payload: JSON.parse(value) }))
  keyPolicy(it, events, "park")
  marks(it, events)
  upkeep(it, events)
}

/** For a layer with the key policy `block`. */
export const blockingDeliveryContract = (it: It): void => keyPolicy(it, events, "block")

export const realtimeDeliveryContract = (it: It): void => {
  claims(it, signals, claimedSignal, ({ id: _, ...row }) => row)
  keyPolicy(it, signals, "park")
  marks(it, signals)
  upkeep(it, signals)
  expiry(it)
}
