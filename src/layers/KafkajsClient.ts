/**
 * kafkajs 2.2.4 with its known faults kept out: not idempotent (it reuses sequences after a failure), rows acked by the
 * answer and not by the resolved promise (it forgets rows whose leader moved), connections that end with the client.
 * Imported only where it is used.
 */
import "./KafkajsTimers.ts"
import { Effect } from "effect"
import kafkajs, {
  type Admin,
  type Kafka,
  type KafkaConfig,
  type Message,
  type Producer,
  type SASLOptions
} from "kafkajs"
import { topic } from "../domain/ConferenceEnded.ts"
import type { PendingEvent } from "../services/IntegrationOutbox.ts"
import type { KafkaSettings } from "../services/SettingsKafka.ts"
import { clientId, connectTimeout, type Reach, reach, request } from "./KafkaConnection.ts"
import { attempt, type KafkaFailure } from "./KafkaErrors.ts"
import { makeLog } from "./KafkajsLog.ts"
import { makeSockets, type Sockets } from "./KafkajsSockets.ts"
import type { Delivery, KafkaClient } from "./KafkaPublisher.ts"

// The named exports of kafkajs are there for types alone.
const { logLevel, Partitioners } = kafkajs

const closing = "2 seconds"

/** Everything but sockets and log. */
export const configOf = (kafka: KafkaSettings, { tls, sasl }: Reach): KafkaConfig => ({
  clientId,
  brokers: [...kafka.brokers],
  connectionTimeout: connectTimeout(kafka),
  authenticationTimeout: connectTimeout(kafka),
  requestTimeout: request.timeout,
  retry: { retries: request.retries, initialRetryTime: 200, maxRetryTime: 2_000 },
  ...(tls === undefined ? {} : { ssl: tls }),
  ...(sasl === undefined ? {} : { sasl: sasl as SASLOptions })
})

interface Connectable {
  readonly connect: () => Promise<void>
  readonly disconnect: () => Promise<void>
}

/** Connected until the scope ends. Its sockets are cut when it cannot connect, or does not disconnect in time. */
const connected = <A extends Connectable>(client: A, sockets: Sockets) =>
  Effect.acquireRelease(Effect.succeed(client), ({ disconnect }) =>
    attempt(disconnect).pipe(Effect.timeoutOption(closing), Effect.ignore, Effect.ensuring(sockets.close))
  ).pipe(Effect.tap(({ connect }) => Effect.onError(attempt(connect), () => sockets.close)))

const nowhere = -1

/** Java's partitioner, and where it has put each message. One that was put into two partitions may be in neither. */
export const notingPartitioner = () => {
  const partitions = new WeakMap<Message, number>()
  const choose = Partitioners.DefaultPartitioner()
  const createPartitioner = (): typeof choose => (args) => {
    const partition = choose(args)
    const before = partitions.get(args.message) ?? partition
    partitions.set(args.message, before === partition ? partition : nowhere)
    return partition
  }
  return { createPartitioner, partitionOf: (message: Message) => partitions.get(message) ?? nowhere }
}

const toMessage = ({ key, value, headers }: PendingEvent): Message => ({ key, value, headers: { ...headers } })

const sendWith =
  (producer: Producer, partitionOf: (message: Message) => number) =>
  async (batch: ReadonlyArray<PendingEvent>): Promise<Delivery> => {
    const messages = batch.map(toMessage)
    const answers = await producer.send({ topic, messages, acks: -1, timeout: request.acksTimeout })
    const written = new Set(answers.filter(({ errorCode }) => errorCode === 0).map(({ partition }) => partition))
    return { acked: messages.map((message) => written.has(partitionOf(message))) }
  }

const producerOf = (kafka: Kafka, sockets: Sockets) => {
  const { createPartitioner, partitionOf } = notingPartitioner()
  const producer = kafka.producer({
    createPartitioner,
    allowAutoTopicCreation: false,
    idempotent: false,
    metadataMaxAge: request.metadataMaxAge
  })
  const send = sendWith(producer, partitionOf)
  return Effect.as(connected(producer, sockets), {
    // Else kafkajs would go on trying after nobody waits for it.
    send: (batch: ReadonlyArray<PendingEvent>) =>
      Effect.onError(
        attempt(() => send(batch)),
        () => sockets.close
      )
  })
}

const administerBy =
  <A>(ask: (admin: Admin) => Promise<A>) =>
  (kafka: Kafka, sockets: Sockets) =>
    Effect.flatMap(connected(kafka.admin({ retry: { retries: 0 } }), sockets), (admin) =>
      Effect.onError(
        attempt(() => ask(admin)),
        () => sockets.close
      )
    )

export const makeClient = Effect.fnUntraced(function* (settings: KafkaSettings): Effect.fn.Return<KafkaClient> {
  const log = yield* makeLog
  const using = <A, R>(
    use: (kafka: Kafka, sockets: Sockets) => Effect.Effect<A, KafkaFailure, R>
  ): Effect.Effect<A, KafkaFailure, R> =>
    Effect.flatMap(reach(settings), (reached) => {
      const sockets = makeSockets()
      const config = { ...configOf(settings, reached), logLevel: logLevel.WARN, logCreator: log(sockets.isClosed) }
      return use(new kafkajs.Kafka({ ...config, socketFactory: sockets.factory }), sockets)
    })
  const administer = <A>(ask: (admin: Admin) => Promise<A>) => Effect.scoped(using(administerBy(ask)))
  return {
    producer: using(producerOf),
    partitions: Effect.map(
      administer((admin) => admin.fetchTopicMetadata({ topics: [topic] })),
      ({ topics }) => topics[0]?.partitions.length ?? 0
    ),
    createTopic: (numPartitions, replicationFactor) =>
      administer((admin) =>
        admin.createTopics({ waitForLeaders: false, topics: [{ topic, numPartitions, replicationFactor }] })
      )
  }
})
