/** Workers that are killed at the worst moment, alone and in pairs: repeats to the byte, and nothing lost (X1). */
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { topic } from "../../src/domain/ConferenceEnded.ts"
import { assertCalm, isLong, Kafka, note, published, stop, world } from "./DeliveryWorld.ts"
import { cluster } from "./support/Cluster.ts"
import { requirements, titled } from "./support/Requirements.ts"

const lacking = requirements("cluster", "kcat")
const clients = isLong ? (["kafkajs", "platformatic"] as const) : (["kafkajs"] as const)

const withTopic = Effect.tap(cluster(), ({ createTopic }) => createTopic(topic, 6))

describe.skipIf(lacking.length > 0)(titled("killed workers", lacking), () => {
  layer(Layer.effect(Kafka, withTopic), { excludeTestServices: true, timeout: "2 minutes" })((it) => {
    it.effect.each(clients)("repeat what was acked and not marked, to the byte: %s", (client) =>
      Effect.gen(function* () {
        const { brokers } = yield* Kafka
        const place = yield* world(brokers, client)
        yield* place.installGate
        const kills = isLong ? 20 : 3
        for (let kill = 0; kill < kills; kill++) {
          yield* place.closeGate
          yield* place.append(20)
          const running = yield* place.worker()
          yield* place.ackedNotMarked
          yield* running.kill("SIGKILL")
          yield* running.ended
          yield* place.forgetWorkers
          yield* place.openGate
          assert.strictEqual(yield* place.left, 20 * (kill + 1))
        }
        const running = yield* place.worker()
        yield* place.drained()
        const found = yield* place.audit(brokers)
        // The rows of the first kill were sent before each of them, those of the last one before that one.
        assert.strictEqual(found.repeats, (20 * kills * (kills + 1)) / 2)
        yield* assertCalm(running)
        yield* note(`killed between ack and mark ${client}`, { kills, ...found })
        yield* stop(running)
      })
    )

    it.effect.each(clients)(
      "are followed by the other one within seconds, which repeats only what was under way: %s",
      (client) =>
        Effect.gen(function* () {
          const { brokers } = yield* Kafka
          const place = yield* world(brokers, client)
          yield* place.installGate
          const one = yield* place.worker()
          const other = yield* place.worker()
          for (let n = 0; n < 10; n++) yield* place.append(100)
          yield* place.drained()
          assert.strictEqual((yield* place.audit(brokers)).repeats, 0)
          const counts = [yield* one.metric(published), yield* other.metric(published)]
          assert.strictEqual(
            counts.reduce<number>((sum, count) => sum + (count ?? 0), 0),
            1_000
          )
          yield* stop(other)
          yield* place.closeGate
          yield* place.append(50)
          yield* place.ackedNotMarked
          const successor = yield* place.worker()
          yield* successor.waitForLog("the topic is there")
          yield* one.kill("SIGKILL")
          const [took] = yield* Effect.timed(place.markWaits)
          yield* place.openGate
          yield* place.append(100)
          yield* place.drained()
          const found = yield* place.audit(brokers)
          assert.strictEqual(found.repeats, 50)
          yield* assertCalm(successor)
          yield* note(`taken over after a kill ${client}`, { counts, took, ...found })
          yield* stop(successor)
        })
    )
  })
})
