/** What tests ask of a cluster beside sending and reading. Each call is a connection of its own, so that nodes may come and go. */

import { Effect, Schedule } from "effect"
import { type Admin, Kafka, logLevel } from "kafkajs"
import { KafkaUnavailable } from "./KafkaUnavailable.ts"

interface Partition {
  readonly partition: number
  /** -1: none. */
  readonly leader: number
  readonly replicas: ReadonlyArray<number>
  readonly inSync: ReadonlyArray<number>
}

type Config = Readonly<Record<string, string>>
type Partitions = ReadonlyArray<Partition>

export interface Administration {
  /** `config`: the topic's own, such as `min.insync.replicas`. Ready when every partition has all its replicas. */
  readonly createTopic: (
    topic: string,
    partitions: number,
    replication?: number,
    config?: Config
  ) => Effect.Effect<void, KafkaUnavailable>
  readonly deleteTopic: (topic: string) => Effect.Effect<void, KafkaUnavailable>
  /** In order. */
  readonly partitions: (topic: string) => Effect.Effect<Partitions, KafkaUnavailable>
  /** Waits until they are so, for half a minute at the most. */
  readonly awaitPartitions: (
    topic: string,
    areSo: (partitions: Partitions) => boolean
  ) => Effect.Effect<Partitions, KafkaUnavailable>
  /** Has the partition led by this replica. Never less than all replicas but one are in sync meanwhile. */
  readonly moveLeader: (topic: string, partition: number, to: number) => Effect.Effect<void, KafkaUnavailable>
  /** The offset after the last record, by partition. */
  readonly endOffsets: (topic: string) => Effect.Effect<ReadonlyArray<number>, KafkaUnavailable>
}

/** Until the cluster has settled, for half a minute at the most. */
export const forAWhile = Schedule.max([Schedule.spaced("100 millis"), Schedule.during("30 seconds")])

export const allInSync = (partitions: Partitions): boolean =>
  partitions.every(({ leader, replicas, inSync }) => leader >= 0 && inSync.length === replicas.length)

const usingAdmin =
  (brokers: ReadonlyArray<string>) =>
  <A>(what: string, work: (admin: Admin) => Promise<A>) =>
    Effect.acquireUseRelease(
      Effect.sync(() =>
        new Kafka({
          brokers: [...brokers],
          logLevel: logLevel.NOTHING,
          connectionTimeout: 2_000,
          retry: { retries: 5, initialRetryTime: 100, maxRetryTime: 1_000 }
        }).admin()
      ),
      (admin) =>
        Effect.tryPromise({
          try: () => admin.connect().then(() => work(admin)),
          catch: (cause) => new KafkaUnavailable({ message: `cannot ${what}: ${cause}` })
        }),
      (admin) => Effect.promise(() => admin.disconnect())
    )

type Use = ReturnType<typeof usingAdmin>

const partitionsOf = (use: Use) => (topic: string) =>
  use(`look at ${topic}`, async (admin) => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    const found = topics.flatMap(({ partitions }) => partitions)
    return found
      .map(({ partitionId, leader, replicas, isr }) => ({ partition: partitionId, leader, replicas, inSync: isr }))
      .sort((one, other) => one.partition - other.partition)
  })

const createTopicWith = (use: Use) => (topic: string, partitions: number, replication: number, config: Config) =>
  use(`create ${topic}`, (admin) =>
    admin.createTopics({
      waitForLeaders: false,
      topics: [
        {
          topic,
          numPartitions: partitions,
          replicationFactor: replication,
          configEntries: Object.entries(config).map(([name, value]) => ({ name, value }))
        }
      ]
    })
  )

const reassignWith = (use: Use) => (topic: string, partition: number, replicas: ReadonlyArray<number>) =>
  use(`reassign ${topic}`, (admin) =>
    admin.alterPartitionReassignments({
      topics: [{ topic, partitionAssignment: [{ partition, replicas: [...replicas] }] }]
    })
  )

export const administration = (brokers: ReadonlyArray<string>): Administration => {
  const use = usingAdmin(brokers)
  const partitions = partitionsOf(use)
  const reassign = reassignWith(use)
  const awaitPartitions: Administration["awaitPartitions"] = (topic, areSo) =>
    partitions(topic).pipe(
      Effect.filterOrFail(
        areSo,
        (seen) => new KafkaUnavailable({ message: `${topic} remains as ${JSON.stringify(seen)}` })
      ),
      Effect.retry(forAWhile)
    )
  const ofPartition = (partition: number, isSo: (one: Partition) => boolean) => (all: Partitions) =>
    all.some((one) => one.partition === partition && isSo(one))
  const endOffsets: Administration["endOffsets"] = (topic) =>
    use(`read the offsets of ${topic}`, async (admin) => {
      const offsets = await admin.fetchTopicOffsets(topic)
      return offsets.sort((one, other) => one.partition - other.partition).map(({ offset }) => Number(offset))
      // A new leader does not say before its followers have caught up.
    }).pipe(Effect.retry(forAWhile))
  return {
    partitions,
    awaitPartitions,
    endOffsets,
    createTopic: Effect.fnUntraced(function* (topic, count, replication = 1, config = {}) {
      yield* createTopicWith(use)(topic, count, replication, config)
      yield* awaitPartitions(topic, (all) => all.length === count && allInSync(all))
      // A broker names itself leader a moment before it serves the partition: a batch sent then is refused in part.
      yield* endOffsets(topic)
    }),
    deleteTopic: (topic) => use(`delete ${topic}`, (admin) => admin.deleteTopics({ topics: [topic] })),
    // kafkajs cannot ask for an election. A leader that is no replica any more is replaced by the first one that is.
    moveLeader: Effect.fnUntraced(function* (topic, partition, to) {
      const before = (yield* partitions(topic)).find((each) => each.partition === partition)
      const old = before?.leader ?? -1
      if (old === to) return
      const others = (before?.replicas ?? []).filter((id) => id !== old && id !== to)
      yield* reassign(topic, partition, [to, ...others])
      yield* awaitPartitions(
        topic,
        ofPartition(partition, ({ leader }) => leader === to)
      )
      yield* reassign(topic, partition, [to, ...others, old])
      yield* awaitPartitions(
        topic,
        (all) => allInSync(all) && ofPartition(partition, ({ replicas }) => replicas.includes(old))(all)
      )
    })
  }
}
