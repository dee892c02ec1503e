/** What an EventPublisher on brokers does beside the contract of all: its topic, Java's partitions, what is too large. */
import { assert, type Vitest } from "@effect/vitest"
import { Context, Effect } from "effect"
import { topic } from "../../src/domain/ConferenceEnded.ts"
import { EventPublisher } from "../../src/services/EventPublisher.ts"
import { event, events, messageIds } from "./Events.ts"
import { javaPartitions } from "./JavaPartitions.ts"
import { arrived, type Consumer } from "./PublisherContract.ts"
import type { Cluster } from "./support/Cluster.ts"
import { readTopic } from "./support/Kcat.ts"

/** One node, on which nobody has created the topic yet. */
export class Kafka extends Context.Service<Kafka, Cluster>()("test/Kafka") {}

type Ports = EventPublisher | Kafka | Consumer

export const topicContract = (it: Vitest.MethodsNonLive<Ports>): void => {
  it.effect("sees that the topic is missing, and neither asking nor sending creates it", () =>
    Effect.gen(function* () {
      const publisher = yield* EventPublisher
      assert.deepStrictEqual(yield* publisher.topic, { state: "missing" })
      const [result] = yield* publisher.publish(events(1))
      assert.strictEqual(result?.outcome, "unavailable")
      assert.deepStrictEqual(yield* publisher.health, { status: "degraded", reason: result?.reason ?? "" })
      assert.deepStrictEqual(yield* publisher.topic, { state: "missing" })
    })
  )

  it.effect("says why the topic cannot be created when there are too few brokers", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip((yield* EventPublisher).createTopic(6, 3))
      assert.include(message, "fewer than 3 brokers")
    })
  )

  it.effect("creates the topic and leaves it as it is the second time", () =>
    Effect.gen(function* () {
      const publisher = yield* EventPublisher
      yield* publisher.createTopic(6, 1)
      assert.deepStrictEqual(yield* publisher.topic, { state: "ready", partitions: 6 })
      yield* publisher.createTopic(12, 1)
      assert.deepStrictEqual(yield* publisher.topic, { state: "ready", partitions: 6 })
    })
  )
}

export const brokerContract = (it: Vitest.MethodsNonLive<Ports>): void => {
  it.effect("puts every key where Java's client would", () =>
    Effect.gen(function* () {
      const { brokers } = yield* Kafka
      const rows = javaPartitions.map(([key], n) => event(n, { key }))
      yield* (yield* EventPublisher).publish(rows)
      const ids = new Set(messageIds(rows))
      const found = (yield* readTopic(brokers, topic)).filter(({ headers }) => ids.has(headers["message-id"]))
      assert.deepStrictEqual(
        new Map(found.map(({ key, partition }) => [key, partition])),
        new Map(javaPartitions.map(([key, , ofSix]) => [key, ofSix]))
      )
    })
  )

  it.effect("rejects a row that is too large and sends on", () =>
    Effect.gen(function* () {
      const publisher = yield* EventPublisher
      const [result] = yield* publisher.publish([event(1, { length: 1_100_000 })])
      assert.strictEqual(result?.outcome, "rejected")
      assert.include(result?.reason, "MESSAGE_TOO_LARGE")
      assert.deepStrictEqual(yield* publisher.health, { status: "up" })
      const rows = events(3)
      yield* publisher.publish(rows)
      assert.lengthOf(yield* arrived(rows), 3)
    })
  )
}
