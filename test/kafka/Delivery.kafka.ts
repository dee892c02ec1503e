/** The worker publishes what its outbox holds, on both clients and both lines of Kafka (X1). */
import { assert, describe, it, layer, type Vitest } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { topic } from "../../src/domain/ConferenceEnded.ts"
import { execute } from "../e2e/Process.ts"
import {
  assertCalm,
  isLong,
  Kafka,
  metricBecomes,
  note,
  parked,
  pending,
  published,
  stop,
  world
} from "./DeliveryWorld.ts"
import { securedBrokerWith, user } from "./SecuredBroker.ts"
import { cluster } from "./support/Cluster.ts"
import { kafka3, kafka4 } from "./support/Distribution.ts"
import { freePort } from "./support/Ports.ts"
import { requirements, titled } from "./support/Requirements.ts"

const lacking = requirements("cluster", "kcat")
const clients = ["kafkajs", "platformatic"] as const
const create = ["topic", "create", "--replication", "1"]
const missing = "the topic does not exist"

type Suite = Vitest.MethodsNonLive<Kafka>

const missingTopic = (it: Suite) =>
  it.effect("names the command that creates a missing topic, and drains after it without a restart", () =>
    Effect.gen(function* () {
      const { brokers } = yield* Kafka
      const { append, audit, drained, env, worker } = yield* world(brokers)
      yield* append(100)
      const running = yield* worker()
      const { level, message } = yield* running.waitForLog(missing)
      assert.strictEqual(level, "WARN")
      assert.match(message, /npm run -s reaper -- topic create$/)
      yield* running.waitForLog("outbox delivery is held up")
      const created = yield* execute(create, env)
      assert.deepStrictEqual([created.code, created.stdout], [0, `${topic} created with 6 partitions, replication 1\n`])
      yield* drained()
      yield* running.waitForLog("outbox delivery goes on")
      const again = yield* execute([...create, "--partitions", "12"], env)
      assert.deepStrictEqual([again.code, again.stdout], [0, `${topic} exists with 6 partitions, nothing was done\n`])
      yield* assertCalm(running)
      yield* note(`topic created under a worker`, yield* audit(brokers))
      yield* stop(running)
    })
  )

const publishing = (it: Suite, version: string) =>
  it.effect.each(clients)("publishes each row once, byte for byte, in the order of its deal: %s (X1)", (client) =>
    Effect.gen(function* () {
      const { brokers } = yield* Kafka
      const { append, audit, drained, worker } = yield* world(brokers, client)
      const rows = isLong ? 20_000 : 1_000
      for (let left = rows; left > 0; left -= 500) yield* append(500)
      const before = performance.now()
      const running = yield* worker()
      yield* drained("3 minutes")
      const milliseconds = Math.round(performance.now() - before)
      assert.strictEqual(yield* running.metric(published), rows)
      yield* metricBecomes(running, pending, 0)
      const found = yield* audit(brokers)
      assert.strictEqual(found.repeats, 0)
      yield* assertCalm(running)
      yield* note(`${version} ${client} start to drained`, {
        rows,
        milliseconds,
        ...found,
        "stop ms": yield* stop(running)
      })
    })
  )

const poison = (it: Suite, version: string) =>
  it.effect.each(clients)("parks the row that the broker finds too large, and publishes the rest: %s", (client) =>
    Effect.gen(function* () {
      const { brokers } = yield* Kafka
      const { append, appendTooLarge, auditPublished, drained, stored, worker } = yield* world(brokers, client)
      yield* append(50)
      yield* appendTooLarge
      yield* append(50)
      const running = yield* worker({ OUTBOX_MAX_ATTEMPTS: "1" })
      const { level, reason } = yield* running.waitForLog("outbox row parked")
      assert.strictEqual(level, "ERROR")
      assert.match(String(reason), /large/i)
      yield* drained()
      yield* metricBecomes(running, parked, 1)
      const rows = yield* stored
      assert.deepStrictEqual(
        rows.map((row) => row.parked),
        rows.map((_, n) => n === 50)
      )
      assert.strictEqual(rows.filter((row) => row.published).length, 100)
      yield* note(`${version} ${client} one of 101 too large`, { ...(yield* auditPublished(brokers)), reason })
      yield* stop(running)
    })
  )

describe.skipIf(lacking.length > 0)(titled("delivery", lacking), () => {
  layer(Layer.effect(Kafka, cluster({ version: kafka4 })), { excludeTestServices: true, timeout: "2 minutes" })(
    `on Kafka ${kafka4}`,
    (it) => {
      missingTopic(it)
      publishing(it, kafka4)
      poison(it, kafka4)
    }
  )

  const withTopic = Effect.tap(cluster({ version: kafka3 }), ({ createTopic }) => createTopic(topic, 6))
  layer(Layer.effect(Kafka, withTopic), { excludeTestServices: true, timeout: "2 minutes" })(
    `on Kafka ${kafka3}`,
    (it) => {
      publishing(it, kafka3)
      if (isLong) poison(it, kafka3)
    }
  )
})

const denied = {
  "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
  "super.users": "User:ANONYMOUS"
}

describe.skipIf(lacking.length > 0)(titled("topic create", lacking), () => {
  it.live.each(clients)("ends with 1 and one line where nobody listens: %s", (client) =>
    Effect.gen(function* () {
      const env = { KAFKA_BROKERS: `127.0.0.1:${yield* freePort}`, KAFKA_CLIENT: client }
      const { code, stdout, stderr } = yield* execute(create, env)
      assert.deepStrictEqual([code, stdout], [1, ""])
      assert.match(stderr, /^conference-room-reaper: [^\n]+\n$/)
      yield* note(`${client} topic create, nobody listens`, { stderr: stderr.trim() })
    })
  )

  it.live("ends with 1 and one line for a user who may not create it", () =>
    Effect.gen(function* () {
      const { secured, ca } = yield* securedBrokerWith(denied)
      for (const client of clients) {
        const { code, stdout, stderr } = yield* execute(create, {
          KAFKA_BROKERS: secured,
          KAFKA_CLIENT: client,
          KAFKA_SSL_CA: ca,
          KAFKA_SASL_MECHANISM: "scram-sha-256",
          KAFKA_SASL_USERNAME: user.username,
          KAFKA_SASL_PASSWORD: user.password
        })
        assert.deepStrictEqual([code, stdout], [1, ""])
        assert.match(stderr, /^conference-room-reaper: this user may not create the topic [^\n]+\n$/)
      }
    })
  )
})
