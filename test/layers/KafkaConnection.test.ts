import { writeFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import { reach } from "../../src/layers/KafkaConnection.ts"
import { explain, refusalOf } from "../../src/layers/KafkaErrors.ts"
import * as Kafkajs from "../../src/layers/KafkajsClient.ts"
import * as Platformatic from "../../src/layers/PlatformaticClient.ts"
import type { KafkaSettings } from "../../src/services/SettingsKafka.ts"
import { settings } from "../kafka/Events.ts"

const secret = "correct horse"
const sasl: KafkaSettings["sasl"] = Option.some({
  mechanism: "scram-sha-256",
  username: "reaper",
  password: Redacted.make(secret)
})

const files = (paths: Partial<Record<"ca" | "cert" | "key", string>>): KafkaSettings["ssl"] =>
  Option.some({
    ca: Option.fromNullishOr(paths.ca),
    cert: Option.fromNullishOr(paths.cert),
    key: Option.fromNullishOr(paths.key)
  })

const folder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "crr-tls-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true }))
)

const plain = settings(["one:9092", "two:9092"])

describe("the way to the brokers", () => {
  it.effect("is without TLS and login when nothing is set, and waits for 3 s", () =>
    Effect.gen(function* () {
      const reached = yield* reach(plain)
      assert.deepStrictEqual(reached, { tls: undefined, sasl: undefined })
      const kafkajs = Kafkajs.configOf(plain, reached)
      assert.deepInclude(kafkajs, {
        brokers: ["one:9092", "two:9092"],
        connectionTimeout: 3_000,
        requestTimeout: 6_000
      })
      assert.strictEqual(kafkajs.retry?.retries, 2)
      assert.notProperty(kafkajs, "ssl")
      assert.notProperty(kafkajs, "sasl")
      const platformatic = Platformatic.optionsOf(plain, reached)
      assert.deepInclude(platformatic, {
        connectTimeout: 3_000,
        requestTimeout: 6_000,
        retries: 2,
        autocreateTopics: false
      })
    })
  )

  it.effect("is with TLS and login for both clients, each in its own words, and waits for 5 s", () =>
    Effect.gen(function* () {
      const kafka = { ...plain, ssl: files({}), sasl }
      const reached = yield* reach(kafka)
      const login = { username: "reaper", password: secret }
      assert.deepInclude(Kafkajs.configOf(kafka, reached), {
        ssl: {},
        sasl: { ...login, mechanism: "scram-sha-256" },
        connectionTimeout: 5_000
      })
      assert.deepInclude(Platformatic.optionsOf(kafka, reached), {
        tls: {},
        sasl: { ...login, mechanism: "SCRAM-SHA-256" },
        connectTimeout: 5_000,
        tlsServerName: true
      })
    })
  )

  it.effect.each(["127.0.0.1:9093", "[::1]:9093"])("sends no server name to an address: %s", (address) =>
    Effect.gen(function* () {
      const kafka = settings([address], { ssl: files({}) })
      assert.isFalse(Platformatic.optionsOf(kafka, yield* reach(kafka)).tlsServerName)
    })
  )

  it.effect("says which file cannot be read, and no secret", () =>
    Effect.gen(function* () {
      const failure = yield* Effect.flip(reach({ ...plain, ssl: files({ key: "/no/such/key.pem" }), sasl }))
      assert.strictEqual(refusalOf(failure)?.outcome, "misconfigured")
      assert.include(explain(failure), "cannot read KAFKA_SSL_KEY /no/such/key.pem (ENOENT)")
      assert.notInclude(explain(failure), secret)
    })
  )

  it.effect("says that the files are no certificates, and nothing of what is in them", () =>
    Effect.gen(function* () {
      const path = join(yield* folder, "cert.pem")
      writeFileSync(path, secret)
      const failure = yield* Effect.flip(reach({ ...plain, ssl: files({ cert: path, key: path }) }))
      assert.strictEqual(refusalOf(failure)?.outcome, "misconfigured")
      assert.include(explain(failure), "the KAFKA_SSL_* files do not make a TLS context")
      assert.notInclude(explain(failure), secret)
    })
  )
})
