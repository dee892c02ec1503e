/** The brokers, the mock, the proxy and the reader that the Kafka suites stand on do what they say. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Kafka, type KafkaConfig, logLevel, Partitioners } from "kafkajs"
import { allInSync } from "./support/Administration.ts"
import { anyBrokers, cluster } from "./support/Cluster.ts"
import { kafka3, kafka4 } from "./support/Distribution.ts"
import { kafkaProxy } from "./support/KafkaProxy.ts"
import { readTopic } from "./support/Kcat.ts"
import { mockCluster } from "./support/MockCluster.ts"
import { requirements, titled } from "./support/Requirements.ts"
import { apiKey } from "./support/Wire.ts"

const topicName = () => `harness-${crypto.randomUUID()}`

const producer = (brokers: ReadonlyArray<string>, config: Partial<KafkaConfig> = {}) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING, ...config })
      const made = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner, allowAutoTopicCreation: false })
      await made.connect()
      return made
    }),
    (made) => Effect.promise(() => made.disconnect())
  )

type Producer = Effect.Success<ReturnType<typeof producer>>

const message = (n: number) => ({
  key: `комната-${n}`,
  value: JSON.stringify({ n }),
  headers: { "message-id": `m-${n}`, note: "тест" }
})
const send = (to: Producer, topic: string, from: number, count = 1) =>
  Effect.tryPromise(() =>
    to.send({ topic, messages: Array.from({ length: count }, (_, index) => message(from + index)) })
  )
const numbers = (records: ReadonlyArray<{ readonly value: unknown }>) =>
  records.map(({ value }) => (value as { n: number }).n).sort((one, other) => one - other)

const forCluster = requirements("cluster", "kcat")
const forMock = requirements("mock", "kcat")
const forBrokers = requirements("brokers", "kcat")

describe.skipIf(forCluster.length > 0)(titled("brokers of our own", forCluster), () => {
  it.live.each([{ version: kafka4 }, { version: kafka3 }])(
    "one node of Kafka $version keeps what is sent",
    ({ version }) =>
      Effect.gen(function* () {
        const { brokers, createTopic, endOffsets } = yield* cluster({ version })
        const topic = topicName()
        yield* createTopic(topic, 3)
        yield* send(yield* producer(brokers), topic, 0, 10)
        const records = yield* readTopic(brokers, topic)
        expect(numbers(records)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
        const third = records.find(({ key }) => key === "комната-3")
        expect(third).toMatchObject({ headers: { "message-id": "m-3", note: "тест" }, payload: '{"n":3}' })
        const counted = yield* endOffsets(topic)
        expect(counted).toEqual(
          [0, 1, 2].map((partition) => records.filter((one) => one.partition === partition).length)
        )
      })
  )

  it.live("a topic that nobody has created is refused", () =>
    Effect.gen(function* () {
      const { brokers } = yield* cluster()
      const refused = yield* Effect.flip(send(yield* producer(brokers, { retry: { retries: 1 } }), topicName(), 0))
      expect(String(refused.cause)).toContain("does not host this topic-partition")
    })
  )

  it.live("three nodes outlive the kill of one, which comes back on its port and data", () =>
    Effect.gen(function* () {
      const kafka = yield* cluster({ nodes: 3 })
      const topic = topicName()
      yield* kafka.createTopic(topic, 3, 3, { "min.insync.replicas": "2" })
      const to = yield* producer(kafka.brokers)
      yield* send(to, topic, 0, 10)
      const before = yield* kafka.partitions(topic)
      const victim = before[0]?.leader ?? 0
      yield* kafka.killNode(victim)
      yield* kafka.awaitPartitions(topic, (all) => all.every(({ leader }) => leader > 0 && leader !== victim))
      yield* send(to, topic, 10, 10)
      yield* kafka.startNode(victim)
      yield* kafka.awaitPartitions(topic, allInSync)
      yield* kafka.stopNode((victim % 3) + 1)
      yield* kafka.awaitPartitions(topic, (all) => all.every(({ leader }) => leader > 0 && leader !== (victim % 3) + 1))
      expect(numbers(yield* readTopic(kafka.brokers, topic))).toHaveLength(20)
    })
  )

  it.live("a partition's leader moves to the replica that a test names", () =>
    Effect.gen(function* () {
      const kafka = yield* cluster({ nodes: 3 })
      const topic = topicName()
      yield* kafka.createTopic(topic, 1, 3)
      yield* send(yield* producer(kafka.brokers), topic, 0)
      const [before] = yield* kafka.partitions(topic)
      const to = ((before?.leader ?? 0) % 3) + 1
      yield* kafka.moveLeader(topic, 0, to)
      const [after] = yield* kafka.partitions(topic)
      expect(after?.leader).toBe(to)
      expect([...(after?.inSync ?? [])].sort()).toEqual([1, 2, 3])
      expect(numbers(yield* readTopic(kafka.brokers, topic))).toEqual([0])
    })
  )

  it.live("a paused node leaves a request without an answer, and serves again when it is resumed", () =>
    Effect.gen(function* () {
      const { brokers, createTopic, pauseNode, resumeNode } = yield* cluster()
      const topic = topicName()
      yield* createTopic(topic, 1)
      const to = yield* producer(brokers, { requestTimeout: 1_000, retry: { retries: 0 } })
      yield* send(to, topic, 0)
      yield* pauseNode(1)
      const unanswered = yield* Effect.flip(send(to, topic, 1))
      yield* resumeNode(1)
      expect(String(unanswered.cause)).toContain("Request Produce")
      yield* send(yield* producer(brokers), topic, 2)
      expect(numbers(yield* readTopic(brokers, topic))).toEqual(expect.arrayContaining([0, 2]))
    })
  )

  it.live("brokers of both lines make one cluster", () =>
    Effect.gen(function* () {
      const { brokers, createTopic } = yield* cluster({ version: [kafka3, kafka4], nodes: 2 })
      const topic = topicName()
      yield* createTopic(topic, 4, 2)
      yield* send(yield* producer(brokers), topic, 0, 10)
      expect(numbers(yield* readTopic(brokers, topic))).toHaveLength(10)
    })
  )
})

describe.skipIf(forBrokers.length > 0)(titled("the proxy before brokers", forBrokers), () => {
  it.live("a lost acknowledgement leaves the record in the topic, and a second try one more", () =>
    Effect.gen(function* () {
      const { brokers, createTopic } = yield* anyBrokers
      const proxy = yield* kafkaProxy(brokers)
      const topic = topicName()
      yield* createTopic(topic, 1)
      const to = yield* producer(proxy.brokers, { requestTimeout: 2_000, retry: { retries: 2 } })
      yield* proxy.loseAnswers(1)
      yield* send(to, topic, 0)
      yield* proxy.loseAnswers(1, "reset")
      yield* send(to, topic, 1)
      expect(numbers(yield* readTopic(proxy.brokers, topic))).toEqual([0, 0, 1, 1])
      expect(proxy.seen()).toEqual({ produceRequests: 4, produceAnswers: 4, lostAnswers: 2 })
    })
  )
})

describe.skipIf(forMock.length > 0)(titled("the mock cluster", forMock), () => {
  it.live("answers with the error that was pushed, once", () =>
    Effect.gen(function* () {
      const mock = yield* mockCluster({ brokers: 3 })
      yield* mock.createTopic("events", 6, 3)
      const to = yield* producer(mock.brokers)
      yield* mock.pushErrors(apiKey.produce, [10])
      const refused = yield* Effect.flip(send(to, "events", 0))
      expect(refused.cause).toMatchObject({ type: "MESSAGE_TOO_LARGE" })
      yield* send(to, "events", 1)
      expect(numbers(yield* readTopic(mock.brokers, "events"))).toEqual([1])
    })
  )

  it.live("goes down and comes up broker by broker, and moves leaders", () =>
    Effect.gen(function* () {
      const mock = yield* mockCluster({ brokers: 3 })
      yield* mock.createTopic("events", 1, 3)
      yield* mock.setLeader("events", 0, 2)
      const to = yield* producer(mock.brokers, { retry: { retries: 0 } })
      yield* mock.brokerDown(2)
      yield* Effect.flip(send(to, "events", 0))
      yield* mock.brokerUp(2)
      yield* send(yield* producer(mock.brokers), "events", 1)
      expect(numbers(yield* readTopic(mock.brokers, "events"))).toEqual([1])
    })
  )

  it.live("keeps its clients behind the proxy, which falls silent and carries again", () =>
    Effect.gen(function* () {
      const mock = yield* mockCluster({ brokers: 3 })
      const proxy = yield* kafkaProxy(mock.brokers)
      yield* mock.createTopic("events", 3, 3)
      const to = yield* producer(proxy.brokers)
      yield* send(to, "events", 0)
      yield* proxy.silence("answers")
      const sending = yield* Effect.forkChild(send(to, "events", 1), { startImmediately: true })
      yield* proxy.awaitSeen(({ produceRequests }) => produceRequests === 2)
      expect(proxy.seen().produceAnswers).toBe(1)
      yield* proxy.mend
      yield* Fiber.join(sending)
      expect(numbers(yield* readTopic(proxy.brokers, "events"))).toEqual([0, 1])
    })
  )
})
