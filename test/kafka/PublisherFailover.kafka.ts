/** Brokers that die and come back under a sender that goes on: nothing is lost, no deal's order changes (X1). */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { topic } from "../../src/domain/ConferenceEnded.ts"
import { EventPublisher } from "../../src/services/EventPublisher.ts"
import type { PendingEvent } from "../../src/services/IntegrationOutbox.ts"
import { clients, event, events, messageIds, settings } from "./Events.ts"
import { cluster } from "./support/Cluster.ts"
import { readTopic } from "./support/Kcat.ts"
import { requirements, titled } from "./support/Requirements.ts"

const lacking = requirements("cluster", "kcat")

/** Sends rows until told to stop, as the dispatcher does: what was not acked comes first the next time. Returns all rows. */
const traffic = Effect.fnUntraced(function* (
  publish: EventPublisher["Service"]["publish"],
  keys: ReadonlyArray<string>,
  hasEnd: () => boolean
) {
  const rows: Array<PendingEvent> = []
  let left: ReadonlyArray<PendingEvent> = []
  while (left.length > 0 || !hasEnd()) {
    const more =
      left.length > 0 ? [] : Array.from({ length: 40 }, (_, n) => event(n, { key: keys[n % keys.length] ?? "" }))
    rows.push(...more)
    const batch = [...left, ...more]
    const results = yield* publish(batch)
    left = batch.filter((_, index) => results[index]?.outcome !== "acked")
    yield* Effect.sleep(left.length > 0 ? "200 millis" : "20 millis")
  }
  return rows
})

const firstOfEach = (ids: ReadonlyArray<string | undefined>) => ids.filter((id, index) => ids.indexOf(id) === index)

describe.skipIf(lacking.length > 0)(titled("three brokers", lacking), () => {
  it.live.each(clients.map(([name]) => name))(
    "lose no row and keep the order of each key while one after the other is killed: %s",
    (name) =>
      Effect.gen(function* () {
        const kafka = yield* cluster({ nodes: 3 })
        const [, layer] = yield* Effect.fromNullishOr(clients.find(([client]) => client === name))
        const services = yield* Layer.build(layer({ kafka: settings(kafka.brokers), budget: "20 seconds" }))
        const { createTopic, publish } = Context.get(services, EventPublisher)
        yield* createTopic(6, 3)
        const keys = events(20).map(({ key }) => key)
        let isOver = false
        const sending = yield* Effect.forkChild(
          traffic(publish, keys, () => isOver),
          { startImmediately: true }
        )
        for (const id of [1, 2]) {
          yield* kafka.killNode(id)
          yield* kafka.awaitPartitions(topic, (all) => all.every(({ leader }) => leader > 0 && leader !== id))
          yield* kafka.startNode(id)
          yield* kafka.awaitPartitions(topic, (all) => all.every(({ inSync }) => inSync.length === 3))
        }
        isOver = true
        const rows = yield* Fiber.join(sending)
        const records = yield* readTopic(kafka.brokers, topic)
        const idsOf = (key: string) => messageIds(rows.filter((row) => row.key === key))
        for (const key of keys) {
          assert.deepStrictEqual(firstOfEach(messageIds(records.filter((one) => one.key === key))), idsOf(key))
        }
      })
  )

  it.live.each(clients.map(([name]) => name))("do not let a client take a controller for a broker: %s", (name) =>
    Effect.gen(function* () {
      const { controllers } = yield* cluster()
      const [, layer] = yield* Effect.fromNullishOr(clients.find(([client]) => client === name))
      const services = yield* Layer.build(layer({ kafka: settings(controllers), budget: "10 seconds" }))
      const { publish, topic: state } = Context.get(services, EventPublisher)
      const [result] = yield* publish(events(1))
      assert.strictEqual(result?.outcome, "misconfigured")
      assert.match(result?.reason ?? "", /does KAFKA_BROKERS name a controller\?/)
      assert.strictEqual((yield* state).state, "unknown")
    })
  )
})
