/** One node of Kafka 4 with a listener for clients that wants TLS and a login, by password or by SCRAM. */
import { randomBytes } from "node:crypto"
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { output } from "./support/Command.ts"
import { distribution, javaOptions, kafka4 } from "./support/Distribution.ts"
import { makeNode } from "./support/Node.ts"
import { freePort } from "./support/Ports.ts"

export const user = { username: "reaper", password: "correct horse" } as const

const certificate = (folder: string) =>
  Effect.gen(function* () {
    const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")]
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    const files = ["-keyout", key, "-out", cert]
    yield* output("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...subject, ...files])
    const keystore = join(folder, "keystore.pem")
    writeFileSync(keystore, readFileSync(key))
    appendFileSync(keystore, readFileSync(cert))
    return { cert, keystore }
  })

const login = `org.apache.kafka.common.security.plain.PlainLoginModule required user_${user.username}="${user.password}";`
const scramLogin = "org.apache.kafka.common.security.scram.ScramLoginModule required;"

const propertiesOf = (ports: Record<"broker" | "controller" | "client", number>, folder: string, keystore: string) => ({
  "node.id": 1,
  "log.dirs": join(folder, "data"),
  "process.roles": "broker,controller",
  "controller.quorum.voters": `1@127.0.0.1:${ports.controller}`,
  listeners: `BROKER://127.0.0.1:${ports.broker},CONTROLLER://127.0.0.1:${ports.controller},CLIENT://127.0.0.1:${ports.client}`,
  "advertised.listeners": `BROKER://127.0.0.1:${ports.broker},CLIENT://localhost:${ports.client}`,
  "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT,CLIENT:SASL_SSL",
  "inter.broker.listener.name": "BROKER",
  "controller.listener.names": "CONTROLLER",
  "auto.create.topics.enable": "false",
  "offsets.topic.replication.factor": 1,
  "ssl.keystore.type": "PEM",
  "ssl.keystore.location": keystore,
  "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
  "listener.name.client.plain.sasl.jaas.config": login,
  "listener.name.client.scram-sha-256.sasl.jaas.config": scramLogin,
  "listener.name.client.scram-sha-512.sasl.jaas.config": scramLogin,
  "log.cleaner.dedupe.buffer.size": 2_097_152
})

const format = (classPath: string, properties: string) =>
  output("java", [
    ...javaOptions,
    ...["-cp", classPath, "kafka.tools.StorageTool", "format"],
    ...["--cluster-id", randomBytes(16).toString("base64url"), "--config", properties],
    ...["256", "512"].flatMap((bits) => [
      "--add-scram",
      `SCRAM-SHA-${bits}=[name=${user.username},password=${user.password}]`
    ])
  ])

/** `open`: the listener without any of it, to look at the topic. `ca`: the path of the authority's certificate. */
export const securedBrokerWith = Effect.fnUntraced(function* (more: Readonly<Record<string, string>>) {
  const folder = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "crr-kafka-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true, force: true, maxRetries: 5 }))
  )
  const ports = yield* Effect.all({ broker: freePort, controller: freePort, client: freePort })
  const { cert, keystore } = yield* certificate(folder)
  const properties = { ...propertiesOf(ports, folder, keystore), ...more }
  mkdirSync(join(folder, "data"))
  const file = join(folder, "server.properties")
  writeFileSync(
    file,
    Object.entries(properties).reduce((text, [name, value]) => `${text}${name}=${value}\n`, "")
  )
  const found = yield* distribution(kafka4)
  yield* format(found.classPath, file)
  const place = { id: 1, folder, distribution: found, port: ports.broker, properties }
  const node = yield* Effect.acquireRelease(
    Effect.sync(() => makeNode(place)),
    ({ killed }) => killed
  )
  yield* node.spawned
  yield* node.ready([1])
  return { open: `127.0.0.1:${ports.broker}`, secured: `localhost:${ports.client}`, ca: cert }
})

export const securedBroker = securedBrokerWith({})
