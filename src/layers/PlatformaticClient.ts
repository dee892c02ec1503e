/**
 * @platformatic/kafka with the same meaning of a send as the other client: Java's partitioner, which is not its default
 * (an exchange of clients must not move a deal to another partition), no idempotence, retries bounded. Imported only where
 * it is used.
 */
import { isIP } from "node:net"
import {
  Admin,
  type Base,
  type BaseOptions,
  compatibilityPartitioner,
  type ProduceResult,
  Producer,
  stringSerializers
} from "@platformatic/kafka"
import { Effect, type Scope } from "effect"
import { topic } from "../domain/ConferenceEnded.ts"
import type { PendingEvent } from "../services/IntegrationOutbox.ts"
import type { KafkaSettings } from "../services/SettingsKafka.ts"
import { clientId, connectTimeout, type Reach, reach, request } from "./KafkaConnection.ts"
import { attempt, type KafkaFailure } from "./KafkaErrors.ts"
import type { Delivery, KafkaClient } from "./KafkaPublisher.ts"

const closing = "2 seconds"

const mechanisms = { plain: "PLAIN", "scram-sha-256": "SCRAM-SHA-256", "scram-sha-512": "SCRAM-SHA-512" } as const

const isNamed = (broker: string) => isIP(broker.replace(/:\d+$/, "").replace(/^\[|\]$/g, "")) === 0

export const optionsOf = (kafka: KafkaSettings, { tls, sasl }: Reach) =>
  ({
    clientId,
    bootstrapBrokers: [...kafka.brokers],
    connectTimeout: connectTimeout(kafka),
    requestTimeout: request.timeout,
    timeout: request.acksTimeout,
    retries: request.retries,
    retryDelay: 200,
    metadataMaxAge: request.metadataMaxAge,
    autocreateTopics: false,
    // By default it sends no server name; an address may not be one.
    ...(tls === undefined ? {} : { tls, tlsServerName: kafka.brokers.every(isNamed) }),
    ...(sasl === undefined ? {} : { sasl: { ...sasl, mechanism: mechanisms[sasl.mechanism] } })
  }) satisfies BaseOptions

const ignore = () => {}

/** Destroys the sockets that there are now: a client that closes forgets them. */
const destroyerOf = (client: Base) => {
  const sockets = [...client.connections].flatMap(([, { socket }]) => socket ?? [])
  return Effect.sync(() => {
    for (const socket of sockets) socket.destroy()
  })
}

/** Nothing goes out any more but what has left already. */
const cut = (client: Base) =>
  Effect.suspend(() => {
    const destroyed = destroyerOf(client)
    // Closed first, so that a send that is under way is not tried again.
    client.close(ignore)
    return destroyed
  })

/** Until the scope ends. A connection that does not close in time is cut. */
const open = <A extends Base>(make: () => A): Effect.Effect<A, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const client = make()
      // A connection that fails twice says so the second time to nobody, which would end the process.
      client.on("client:broker:connect", ({ connection }) => connection.on("error", ignore))
      client.on("client:broker:failed", ({ connection }) => connection.on("error", ignore))
      return client
    }),
    (client) =>
      Effect.suspend(() =>
        attempt(() => client.close()).pipe(
          Effect.timeoutOption(closing),
          Effect.ignore,
          Effect.ensuring(destroyerOf(client))
        )
      )
  )

/** The number that Java's client takes the remainder of, for the partition of a key. */
export const hashOf = (key: string): number => compatibilityPartitioner({ topic }, Buffer.from(key))

const partitionCount = (client: Base) =>
  Effect.map(
    attempt(() => client.metadata({ topics: [topic] })),
    ({ topics }) => topics.get(topic)?.partitionsCount ?? 0
  )

const writtenTo = (result: ProduceResult | undefined) =>
  new Set((result?.offsets ?? []).map(({ partition }) => partition))

// What went well at other brokers stands in the error.
const producedIn = (error: unknown): ProduceResult | undefined =>
  (error as { readonly produced?: ProduceResult } | undefined)?.produced

type TextProducer = Producer<string, string, string, string>

const sendWith = (producer: TextProducer) =>
  Effect.fnUntraced(function* (batch: ReadonlyArray<PendingEvent>) {
    const partitions = yield* partitionCount(producer)
    const messages = batch.map(({ key, value, headers }) => ({
      topic,
      key,
      value,
      headers: { ...headers },
      // Chosen here, where it can be held against the answer.
      partition: hashOf(key) % partitions
    }))
    const toDelivery = (written: ReadonlySet<number>, failure?: KafkaFailure): Delivery => ({
      acked: messages.map(({ partition }) => written.has(partition)),
      ...(failure === undefined ? {} : { failure })
    })
    return yield* attempt(() => producer.send({ messages, acks: -1 })).pipe(
      Effect.map((result) => toDelivery(writtenTo(result))),
      Effect.catch((failure) => Effect.succeed(toDelivery(writtenTo(producedIn(failure.cause)), failure)))
    )
  })

export const makeClient = (kafka: KafkaSettings): KafkaClient => {
  const administer = <A>(ask: (admin: Admin) => Effect.Effect<A, KafkaFailure>) =>
    Effect.scoped(
      Effect.flatMap(reach(kafka), (reached) =>
        Effect.flatMap(
          open(() => new Admin({ ...optionsOf(kafka, reached), retries: 0 })),
          (admin) => Effect.onError(ask(admin), () => cut(admin))
        )
      )
    )
  return {
    producer: Effect.flatMap(reach(kafka), (reached) =>
      Effect.map(
        open(() => new Producer({ ...optionsOf(kafka, reached), idempotent: false, serializers: stringSerializers })),
        (producer) => {
          const send = sendWith(producer)
          return { send: (batch) => Effect.onError(send(batch), () => cut(producer)) }
        }
      )
    ),
    partitions: administer(partitionCount),
    createTopic: (partitions, replicas) =>
      administer((admin) => attempt(() => admin.createTopics({ topics: [topic], partitions, replicas })))
  }
}
