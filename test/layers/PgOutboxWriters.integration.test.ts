/**
 * Delivery from PostgreSQL beside many writers (X1): whatever the order in which their transactions end, each row goes
 * out once, and of one key in the order of the ids as far as the rows were there to be seen together.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Random } from "effect"
import * as Instant from "../../src/domain/Instant.ts"
import { events, type Subject, signals } from "../contract/DeliverySubject.ts"
import { asOf, committed, onEmptyTables } from "../contract/Fixtures.ts"
import * as PgPorts from "../contract/PgPorts.ts"

const writers = 8
const transactions = 25
const rowsEach = 3
const keys = 5

interface Sent {
  readonly id: bigint
  readonly n: number
  /** When its claim began. */
  readonly claimedAt: number
}

const delivers = <Row extends { readonly id: bigint }>(subject: Subject<Row>) =>
  Effect.gen(function* () {
    const outbox = yield* subject.outbox
    let time = 0
    /** By number of the conference: when its commit had been answered. */
    const visibleAt = new Map<number, number>()
    const write = (writer: number) =>
      Effect.forEach(Array.from({ length: transactions }), (_, i) => {
        const first = (writer * transactions + i) * rowsEach
        const numbers = Array.from({ length: rowsEach }, (_, k) => first + k + 1)
        return Effect.gen(function* () {
          const delay = yield* Random.nextIntBetween(0, 20)
          yield* committed(
            Effect.andThen(subject.append(numbers.map((n) => ({ n, key: n % keys }))), Effect.sleep(`${delay} millis`))
          )
          time++
          for (const n of numbers) visibleAt.set(n, time)
        })
      })
    const writing = yield* Effect.forkChild(
      Effect.forEach(Array.from({ length: writers }), (_, writer) => write(writer), { concurrency: "unbounded" })
    )

    const sent: Array<Sent> = []
    const drain = Effect.gen(function* () {
      const claimedAt = ++time
      const rows = yield* outbox.claimPending(asOf, 10)
      sent.push(...rows.map((row) => ({ id: row.id, n: subject.numberOf(row), claimedAt })))
      yield* outbox.markDelivered(
        rows.map((row) => row.id),
        asOf
      )
      return rows.length === 0 && writing.pollUnsafe() !== undefined
    })
    yield* Effect.repeat(drain, { until: (isDone) => isDone })
    yield* Fiber.join(writing)

    const total = writers * transactions * rowsEach
    assert.strictEqual(sent.length, total)
    assert.strictEqual(new Set(sent.map(({ n }) => n)).size, total)
    for (const [i, later] of sent.entries()) {
      const overtaken = sent.slice(i + 1).filter(({ id, n }) => id < later.id && n % keys === later.n % keys)
      for (const { n } of overtaken) assert.isAtLeast(visibleAt.get(n) ?? 0, later.claimedAt)
    }
    const delivery = yield* subject.delivery
    assert.isTrue(delivery.every((row) => row.deliveredAt === asOf && row.attempts === 0))
    assert.deepStrictEqual(yield* outbox.status, { pending: 0, oldestPendingAt: null, parked: 0 })
    assert.strictEqual(yield* outbox.pruneDelivered(Instant.Instant.make(asOf + 1n), total + 1), total)
  }).pipe(onEmptyTables)

layer(PgPorts.layer, { excludeTestServices: true })("delivery beside eight writers", (it) => {
  it.effect("sends each event once, and those of one key in order (X1)", () => delivers(events))
  it.effect("sends each push once, and those of one chat in order (X2)", () => delivers(signals))
})
