/**
 * A Kafka of the test's own: KRaft nodes on loopback ports and in temporary folders. Nodes go by their ids 1..n, as in the
 * answers of `partitions`; node 1 is `brokers[0]`. Topics are not created by themselves.
 */
import { randomBytes } from "node:crypto"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import { type Administration, administration } from "./Administration.ts"
import { distribution, kafka4 } from "./Distribution.ts"
import type { KafkaUnavailable } from "./KafkaUnavailable.ts"
import { format, makeNode, type Node, type Place } from "./Node.ts"
import { freePort } from "./Ports.ts"
import { givenBrokers } from "./Requirements.ts"

export interface Brokers extends Administration {
  readonly brokers: ReadonlyArray<string>
}

export interface Cluster extends Brokers {
  /** Where the controllers listen: a wrong address for a client. */
  readonly controllers: ReadonlyArray<string>
  /** With SIGKILL. */
  readonly killNode: (id: number) => Effect.Effect<void>
  /** With SIGTERM: it hands over its leaderships, for which most of the nodes must run. */
  readonly stopNode: (id: number) => Effect.Effect<void, KafkaUnavailable>
  /** On the same ports and data; ready when it serves clients, for which most of the nodes must run. */
  readonly startNode: (id: number) => Effect.Effect<void, KafkaUnavailable>
  /** Silent, with its connections open (SIGSTOP), until resumed. */
  readonly pauseNode: (id: number) => Effect.Effect<void>
  readonly resumeNode: (id: number) => Effect.Effect<void>
  readonly pid: (id: number) => number | undefined
}

export interface ClusterOptions {
  /** One for all nodes, or each node's own; the first must be the oldest, whose metadata they all begin with. */
  readonly version?: string | ReadonlyArray<string>
  readonly nodes?: number
  readonly properties?: Place["properties"]
}

interface Ports {
  readonly broker: number
  readonly controller: number
}

const address = (port: number) => `127.0.0.1:${port}`

const propertiesOf = (ports: Ports, all: ReadonlyArray<Ports>): Place["properties"] => {
  const replicas = Math.min(3, all.length)
  const enough = Math.max(1, replicas - 1)
  return {
    "process.roles": "broker,controller",
    "controller.quorum.voters": all.map(({ controller }, index) => `${index + 1}@${address(controller)}`).join(),
    listeners: `BROKER://${address(ports.broker)},CONTROLLER://${address(ports.controller)}`,
    "advertised.listeners": `BROKER://${address(ports.broker)}`,
    "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "BROKER",
    "controller.listener.names": "CONTROLLER",
    "auto.create.topics.enable": "false",
    "default.replication.factor": replicas,
    "min.insync.replicas": enough,
    "offsets.topic.replication.factor": replicas,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.replication.factor": replicas,
    "transaction.state.log.min.isr": enough,
    "transaction.state.log.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    // A killed node is out of service after this time: 9 s by default.
    "broker.session.timeout.ms": 4_000,
    "broker.heartbeat.interval.ms": 500,
    // Half of the heap by default.
    "log.cleaner.dedupe.buffer.size": 2_097_152,
    "num.io.threads": 2,
    "num.network.threads": 2
  }
}

const temporaryFolder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "crr-kafka-"))),
  (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
)

const makeNodes = Effect.fnUntraced(function* ({ version = kafka4, nodes = 1, properties = {} }: ClusterOptions) {
  const versions = Array.from({ length: nodes }, (_, index) => (typeof version === "string" ? version : version[index]))
  const distributions = yield* Effect.forEach(versions, (each) => distribution(each ?? kafka4))
  const folder = yield* temporaryFolder
  const ports = yield* Effect.replicateEffect(Effect.all({ broker: freePort, controller: freePort }), nodes)
  const clusterId = randomBytes(16).toString("base64url")
  return yield* Effect.forEach(distributions, (each, index) => {
    const mine = ports[index] ?? { broker: 0, controller: 0 }
    const place: Place = {
      id: index + 1,
      folder: join(folder, String(index + 1)),
      distribution: { ...each, bootstrapCheckpoint: distributions[0]?.bootstrapCheckpoint ?? "" },
      port: mine.broker,
      properties: { ...propertiesOf(mine, ports), ...properties }
    }
    return Effect.acquireRelease(
      Effect.sync(() => {
        format(place, clusterId)
        return { ...makeNode(place), controller: address(mine.controller) }
      }),
      ({ killed }) => killed
    )
  })
})

const controls = (nodes: ReadonlyArray<Node>) => {
  const at = (id: number) => {
    const node = nodes[id - 1]
    if (node === undefined) throw new Error(`no node ${id}`)
    return node
  }
  return {
    killNode: (id: number) => at(id).killed,
    stopNode: (id: number) => at(id).stopped,
    startNode: (id: number) => Effect.andThen(at(id).spawned, at(id).ready([id])),
    pauseNode: (id: number) => at(id).signal("SIGSTOP"),
    resumeNode: (id: number) => at(id).signal("SIGCONT"),
    pid: (id: number) => at(id).pid()
  }
}

/** Ready when every node serves clients and knows of all others. Fetches Kafka at the first time: allow for a minute. */
export const cluster = Effect.fnUntraced(function* (
  options: ClusterOptions = {}
): Effect.fn.Return<Cluster, KafkaUnavailable, Scope.Scope> {
  const nodes = yield* makeNodes(options)
  yield* Effect.forEach(nodes, ({ spawned }) => spawned)
  const ids = nodes.map(({ place }) => place.id)
  yield* Effect.forEach(nodes, ({ ready }) => ready(ids))
  const brokers = nodes.map(({ place }) => address(place.port))
  const controllers = nodes.map(({ controller }) => controller)
  return { brokers, controllers, ...administration(brokers), ...controls(nodes) }
})

/** The brokers named in KAFKA_BROKERS, else one node of our own: for tests that stop nothing. Name topics uniquely. */
export const anyBrokers: Effect.Effect<Brokers, KafkaUnavailable, Scope.Scope> =
  givenBrokers.length > 0 ? Effect.succeed({ brokers: givenBrokers, ...administration(givenBrokers) }) : cluster()
