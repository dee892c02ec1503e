/** What every EventPublisher does with the rows of a batch, whatever stands behind it (X1). The topic is there. */
import { assert, type Vitest } from "@effect/vitest"
import { Context, Effect } from "effect"
import { acked, EventPublisher } from "../../src/services/EventPublisher.ts"
import type { PendingEvent } from "../../src/services/IntegrationOutbox.ts"
import { event, events, messageIds } from "./Events.ts"

export type Published = Pick<PendingEvent, "key" | "value" | "headers">

/** The consumer's side. */
export class Consumer extends Context.Service<
  Consumer,
  {
    /** Everything that was published; in the order of sending for each key. */
    readonly published: Effect.Effect<ReadonlyArray<Published>>
  }
>()("test/Consumer") {}

const asPublished = ({ key, value, headers }: Published): Published => ({ key, value, headers })

/** Those of the rows that arrived, as often as they did. */
const arrivedEachTime = (rows: ReadonlyArray<PendingEvent>) =>
  Effect.gen(function* () {
    const ids = new Set(messageIds(rows))
    const all = yield* (yield* Consumer).published
    return all.filter(({ headers }) => ids.has(headers["message-id"])).map(asPublished)
  })

/** As a consumer sees them that keeps the first of each: a client may have sent some twice. */
export const arrived = (rows: ReadonlyArray<PendingEvent>) =>
  Effect.map(arrivedEachTime(rows), (all) => {
    const ids = messageIds(all)
    return all.filter((_, index) => ids.indexOf(ids[index]) === index)
  })

const byId = (one: Published, other: Published) =>
  String(one.headers["message-id"]).localeCompare(String(other.headers["message-id"]))

export const publisherContract = (it: Vitest.MethodsNonLive<EventPublisher | Consumer>): void => {
  it.effect("carries every row over byte by byte and says so of each (X1)", () =>
    Effect.gen(function* () {
      const publisher = yield* EventPublisher
      const rows = events(50)
      assert.deepStrictEqual(
        yield* publisher.publish(rows),
        rows.map(() => acked)
      )
      assert.deepStrictEqual((yield* arrived(rows)).toSorted(byId), rows.map(asPublished).toSorted(byId))
      assert.deepStrictEqual(yield* publisher.health, { status: "up" })
    })
  )

  it.effect("keeps the order of each key, within a batch and over several (X1)", () =>
    Effect.gen(function* () {
      const publisher = yield* EventPublisher
      const keys = events(5).map(({ key }) => key)
      const rows = Array.from({ length: 60 }, (_, n) => event(n, { key: keys[n % keys.length] ?? "" }))
      for (const from of [0, 20, 40]) yield* publisher.publish(rows.slice(from, from + 20))
      const all = yield* arrived(rows)
      for (const key of keys) {
        const ofKey = (row: Published) => row.key === key
        assert.deepStrictEqual(messageIds(all.filter(ofKey)), messageIds(rows.filter(ofKey)))
      }
    })
  )

  it.effect("sends a repeated row with the same bytes (X1)", () =>
    Effect.gen(function* () {
      const publisher = yield* EventPublisher
      const row = event(1)
      yield* publisher.publish([row])
      yield* publisher.publish([row])
      const all = yield* arrivedEachTime([row])
      assert.isAtLeast(all.length, 2)
      for (const each of all) assert.deepStrictEqual(each, asPublished(row))
    })
  )

  it.effect("answers two senders at once, each for its own rows", () =>
    Effect.gen(function* () {
      const publisher = yield* EventPublisher
      const batches = [events(30), events(7), events(13)]
      const results = yield* Effect.forEach(batches, publisher.publish, { concurrency: "unbounded" })
      assert.deepStrictEqual(
        results,
        batches.map((batch) => batch.map(() => acked))
      )
    })
  )

  it.effect("has nothing to say of an empty batch", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* (yield* EventPublisher).publish([]), [])
    })
  )
}
