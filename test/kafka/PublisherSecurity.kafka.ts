/** Both clients log in over TLS, and what is wrong with rights or certificates is told apart from an outage. */
import { spawnSync } from "node:child_process"
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { EventPublisher } from "../../src/services/EventPublisher.ts"
import type { KafkaSettings } from "../../src/services/SettingsKafka.ts"
import { clients, events, settings } from "./Events.ts"
import { securedBroker, user } from "./SecuredBroker.ts"
import { administration } from "./support/Administration.ts"
import { requirements, titled } from "./support/Requirements.ts"

const lacking = [...requirements("cluster"), ...(spawnSync("openssl", ["version"]).status === 0 ? [] : ["openssl"])]

class Broker extends Context.Service<Broker, Effect.Success<typeof securedBroker>>()("test/SecuredBroker") {}

type Sasl = Option.Option.Value<KafkaSettings["sasl"]>

const tls = (ca: string) =>
  Option.some({ ca: Option.some(ca), cert: Option.none<string>(), key: Option.none<string>() })

const login = (mechanism: Sasl["mechanism"], password: string = user.password) =>
  Option.some<Sasl>({ mechanism, username: user.username, password: Redacted.make(password) })

describe.skipIf(lacking.length > 0)(titled("a broker that wants TLS and a login", lacking), () => {
  layer(Layer.effect(Broker, securedBroker), { excludeTestServices: true, timeout: "2 minutes" })((it) => {
    for (const [name, make] of clients) {
      const publisher = (kafka: KafkaSettings) =>
        Effect.map(Layer.build(make({ kafka, budget: "15 seconds" })), Context.get(EventPublisher))

      const expectRefusal = (kafka: KafkaSettings, outcome: string, reason: RegExp) =>
        Effect.gen(function* () {
          const { publish, topic } = yield* publisher(kafka)
          const [result] = yield* publish(events(1))
          assert.strictEqual(result?.outcome, outcome)
          assert.match(result?.reason ?? "", reason)
          assert.strictEqual((yield* topic).state, "unknown")
          assert.notInclude(JSON.stringify(result), "wrong secret")
        })

      describe(name, () => {
        it.effect.each(["plain", "scram-sha-256", "scram-sha-512"] as const)(
          "publishes after a login by %s",
          (mechanism) =>
            Effect.gen(function* () {
              const { secured, ca, open } = yield* Broker
              const { publish, createTopic, topic } = yield* publisher(
                settings([secured], { ssl: tls(ca), sasl: login(mechanism) })
              )
              yield* createTopic(3, 1)
              assert.deepStrictEqual(yield* topic, { state: "ready", partitions: 3 })
              const before = (yield* administration([open]).endOffsets("pin.messenger.conference-ended.v1")).reduce(
                (a, b) => a + b
              )
              const results = yield* publish(events(5))
              assert.deepStrictEqual(new Set(results.map(({ outcome }) => outcome)), new Set(["acked"]))
              const after = (yield* administration([open]).endOffsets("pin.messenger.conference-ended.v1")).reduce(
                (a, b) => a + b
              )
              assert.isAtLeast(after - before, 5)
            })
        )

        it.effect.each(["plain", "scram-sha-512"] as const)(
          "is misconfigured with a wrong password by %s",
          (mechanism) =>
            Effect.gen(function* () {
              const { secured, ca } = yield* Broker
              const kafka = settings([secured], { ssl: tls(ca), sasl: login(mechanism, "wrong secret") })
              yield* expectRefusal(kafka, "misconfigured", /authentication|credentials/i)
            })
        )

        it.effect("is misconfigured when a file of TLS is not there, and says which", () =>
          Effect.gen(function* () {
            const { secured } = yield* Broker
            const kafka = settings([secured], { ssl: tls("/no/such/ca.pem"), sasl: login("plain") })
            yield* expectRefusal(kafka, "misconfigured", /cannot read KAFKA_SSL_CA \/no\/such\/ca.pem \(ENOENT\)/)
          })
        )

        it.effect("does not talk to a broker that another authority has signed for", () =>
          Effect.gen(function* () {
            const { secured } = yield* Broker
            const kafka = settings([secured], {
              ssl: Option.some({ ca: Option.none(), cert: Option.none(), key: Option.none() }),
              sasl: login("plain")
            })
            yield* expectRefusal(kafka, "unavailable", /self-signed/)
          })
        )

        it.effect("stays in time when the client speaks no TLS", () =>
          Effect.gen(function* () {
            const { secured } = yield* Broker
            const { publish } = yield* publisher(settings([secured]))
            const [result] = yield* publish(events(1))
            assert.include(["unavailable", "misconfigured"], result?.outcome)
          })
        )
      })
    }
  })
})
