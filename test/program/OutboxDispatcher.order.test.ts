/** Repeats and order (X1): what a consumer sees of a dispatcher that is killed, stopped, or talks to a failing broker. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import * as OutboxDispatcher from "../../src/program/OutboxDispatcher.ts"
import { acked } from "../../src/services/EventPublisher.ts"
import type { PendingEvent } from "../../src/services/IntegrationOutbox.ts"
import { type Answer, EventPublisherControl, rejected, unavailable } from "../fakes/MemoryEventPublisher.ts"
import { OutboxLockControl } from "../fakes/MemoryRunLock.ts"
import {
  addEvents,
  count,
  event,
  faults,
  fresh,
  ids,
  passTimeUntil,
  settle,
  storedEvents
} from "../support/Deliveries.ts"

const start = Effect.forkChild(OutboxDispatcher.run, { startImmediately: true })
const broker = EventPublisherControl
const log = Effect.flatMap(broker, ({ log }) => log)

/** Two rows a send, twenty sends; keys come back. */
const fortyRows = count(40, (n) => event(n, { key: n % 7, padding: 390_000 }))
const allMarked = Effect.map(storedEvents, (rows) => rows.every((row) => row.deliveredAt !== null))

const bytes = ({ key, value, headers }: PendingEvent) => JSON.stringify([key, value, headers])

describe("OutboxDispatcher's order", () => {
  for (const point of count(20, (n) => n)) {
    it.effect(`repeats send ${point}, byte for byte, and no other, when killed between its ack and its mark`, () =>
      Effect.gen(function* () {
        yield* addEvents(...fortyRows)
        let marks = 0
        const killed = Effect.suspend(() => (++marks === point ? Effect.never : Effect.void))
        yield* (yield* faults).before("markDelivered", killed, point)
        // Detached: nothing waits for a process that is gone.
        yield* Effect.forkDetach(OutboxDispatcher.run, { startImmediately: true })
        yield* settle
        assert.strictEqual((yield* log).length, 2 * point)
        yield* (yield* OutboxLockControl).lose
        yield* start
        yield* settle
        const seen = yield* log
        assert.strictEqual(seen.length, 42)
        assert.deepStrictEqual(
          ids(seen.slice(2 * point)),
          count(42 - 2 * point, (n) => n, 2 * point - 1)
        )
        assert.deepStrictEqual(
          seen.slice(2 * point, 2 * point + 2).map(bytes),
          seen.slice(2 * point - 2, 2 * point).map(bytes)
        )
        assert.isTrue(yield* allMarked)
      }).pipe(Effect.provide(fresh()))
    )
  }

  it.effect("repeats nothing however often it is stopped and started in mid-send (X1)", () =>
    Effect.gen(function* () {
      yield* (yield* broker).answerWith((batch) =>
        Effect.as(
          Effect.sleep("1 second"),
          batch.map(() => acked)
        )
      )
      yield* addEvents(...fortyRows)
      for (let stops = 0; stops < 30; stops++) {
        const fiber = yield* start
        yield* TestClock.adjust(300 + 70 * stops)
        const stopping = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
        yield* TestClock.adjust("1 second")
        yield* Fiber.join(stopping)
      }
      assert.deepStrictEqual(
        ids(yield* log),
        count(40, (n) => n)
      )
    }).pipe(Effect.provide(fresh()))
  )

  it.effect.prop(
    "keeps the order of each key and loses nothing, whatever partitions fail, acks are lost and rows are refused (X1)",
    [Story],
    ([story]) =>
      Effect.gen(function* () {
        const { keys } = story
        const taken: Array<PendingEvent> = []
        yield* (yield* broker).answerWith(failingBroker(story, taken))
        yield* addEvents(...keys.map((key, i) => event(i + 1, { key })))
        yield* start
        yield* passTimeUntil(everyRowHasItsEnd(story), "6 minutes")
        assert.isTrue(yield* everyRowHasItsEnd(story))
        const stored = yield* storedEvents
        for (const [key, rows] of Map.groupBy(stored, (row) => row.messageKey)) {
          const good = ids(rows.filter((row) => !isPoison(story, row)))
          assertOrder(ids(taken.filter((row) => row.key === key)), good)
        }
      }).pipe(Effect.provide(fresh("park", { maxAttempts: 2 }))),
    { arbitrary: { runs: 60 } }
  )
})

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** Keys of the rows, numbers of those that are refused, and what the partitions do with each send. */
const Story = Schema.Struct({
  keys: Schema.Array(between(0, 5)).check(Schema.isMinLength(1), Schema.isMaxLength(30)),
  poison: Schema.Array(between(1, 30)).check(Schema.isMaxLength(3)),
  answers: Schema.Array(between(0, 1023)).check(Schema.isMaxLength(10))
})
type Story = typeof Story.Type

const isPoison = ({ poison }: Story, { id }: { readonly id: bigint }) => poison.includes(Number(id))

const everyRowHasItsEnd = (story: Story) =>
  Effect.map(storedEvents, (rows) =>
    rows.every((row) => (isPoison(story, row) ? row.parkedAt : row.deliveredAt) !== null)
  )

/**
 * Of each send, each of five partitions takes its rows and says so, takes them and its ack is lost, or does not take them:
 * two bits of an answer each. A partition that would take a refused row refuses all of its rows. Once the answers are
 * used up, all is well.
 */
const failingBroker =
  (story: Story, taken: Array<PendingEvent>): Answer =>
  (batch, n) =>
    Effect.sync(() => {
      const partitionOf = (row: PendingEvent) => Number(row.key.slice(-3)) % 5
      const refusing = new Set(batch.filter((row) => isPoison(story, row)).map(partitionOf))
      return batch.map((row) => {
        const partition = partitionOf(row)
        const fate = ((story.answers[n] ?? 0) >> (2 * partition)) & 3
        if (fate === 2) return unavailable
        if (refusing.has(partition)) return rejected
        taken.push(row)
        return fate === 3 ? unavailable : acked
      })
    })

/** First deliveries come in order, and a repeat starts over from an earlier row without passing over any: 1 2 3 2 3 4. */
const assertOrder = (seen: ReadonlyArray<number>, stored: ReadonlyArray<number>) => {
  assert.deepStrictEqual([...new Set(seen)], stored)
  for (const [i, id] of seen.entries()) {
    const before = i === 0 ? -1 : stored.indexOf(seen[i - 1] ?? 0)
    assert.isAtMost(stored.indexOf(id) - before, 1, `${seen} passes over a row`)
  }
}
