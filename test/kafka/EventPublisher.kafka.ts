/** Both clients keep the contract on brokers of both lines. */
import { describe, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { topic } from "../../src/domain/ConferenceEnded.ts"
import { brokerContract, Kafka, topicContract } from "./BrokerContract.ts"
import { clients, settings } from "./Events.ts"
import { Consumer, publisherContract } from "./PublisherContract.ts"
import { cluster } from "./support/Cluster.ts"
import { kafka3, kafka4 } from "./support/Distribution.ts"
import { readTopic } from "./support/Kcat.ts"
import { requirements, titled } from "./support/Requirements.ts"

const lacking = requirements("cluster", "kcat")

const consumer = Layer.effect(
  Consumer,
  Effect.map(Kafka, ({ brokers }) => ({
    published: readTopic(brokers, topic).pipe(
      Effect.map((records) =>
        records.map(({ key, payload, headers }) => ({ key: String(key), value: String(payload), headers }))
      ),
      Effect.orDie
    )
  }))
)

for (const version of [kafka4, kafka3]) {
  describe.skipIf(lacking.length > 0)(titled(`Kafka ${version}`, lacking), () => {
    for (const [name, make] of clients) {
      const publisher = Layer.unwrap(
        Effect.map(Kafka, ({ brokers }) => make({ kafka: settings(brokers), budget: "20 seconds" }))
      )
      layer(Layer.merge(publisher, consumer).pipe(Layer.provideMerge(Layer.effect(Kafka, cluster({ version })))), {
        excludeTestServices: true,
        timeout: "2 minutes"
      })(name, (it) => {
        topicContract(it)
        publisherContract(it)
        brokerContract(it)
      })
    }
  })
}
