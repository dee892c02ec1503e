/**
 * EventPublisher (X1) on whatever client: one send at a time; a row is acked only by the broker's own word; a producer
 * that has failed, or that an answer was missing from, is never used again; within the budget there is an answer for every
 * row. The clients differ in how they send, not in what a send means.
 */
import { Duration, Effect, Exit, Option, RcRef, Schedule, type Scope, Semaphore } from "effect"
import { Headers, HttpTraceContext } from "effect/http"
import { topic } from "../domain/ConferenceEnded.ts"
import {
  acked,
  type EventPublisher,
  type PublisherHealth,
  type PublishResult,
  TopicNotCreated,
  type TopicState
} from "../services/EventPublisher.ts"
import type { PendingEvent } from "../services/IntegrationOutbox.ts"
import { code, explain, hasCode, type KafkaFailure, type Refusal, refusalOf } from "./KafkaErrors.ts"

type Batch = ReadonlyArray<PendingEvent>

export interface Delivery {
  /** Whether the broker has said so of each row, in their order. */
  readonly acked: ReadonlyArray<boolean>
  /** Why it has not said so of the others, if the client told. */
  readonly failure?: KafkaFailure
}

interface KafkaProducer {
  /** When it fails or is interrupted nothing goes out any more but what has left already. */
  readonly send: (batch: Batch) => Effect.Effect<Delivery, KafkaFailure>
}

export interface KafkaClient {
  /** Connected; its end is bounded in time. */
  readonly producer: Effect.Effect<KafkaProducer, KafkaFailure, Scope.Scope>
  /** How many partitions the topic has. Asks the broker, once, and creates nothing. */
  readonly partitions: Effect.Effect<number, KafkaFailure>
  readonly createTopic: (partitions: number, replication: number) => Effect.Effect<unknown, KafkaFailure>
}

export interface Options {
  /** The longest time of one `publish`. */
  readonly budget: Duration.Input
  /** A producer that sends nothing for so long is disconnected: nobody watches over its sockets. */
  readonly idle?: Duration.Input
}

const topicDeadline = "5 seconds"
const createDeadline = "15 seconds"

const missingAck: Refusal = { outcome: "unavailable", reason: "the broker's answer does not speak of its partition" }

const late = (budget: Duration.Input): Refusal => ({
  outcome: "unavailable",
  reason: `no answer within ${Duration.format(Duration.fromInputUnsafe(budget))}`
})

const healthAfter = (results: ReadonlyArray<PublishResult>): PublisherHealth => {
  const refusal = results.find(({ outcome }) => outcome === "misconfigured" || outcome === "unavailable")
  return refusal === undefined ? { status: "up" } : { status: "degraded", reason: refusal.reason }
}

// Linked to what wrote the rows, not a child of it: this runs later, and for many at once.
const traced = (batch: Batch) =>
  Effect.withSpan("kafka.publish", {
    kind: "producer",
    attributes: {
      "messaging.system": "kafka",
      "messaging.destination.name": topic,
      "messaging.batch.message_count": batch.length
    },
    links: batch.flatMap(({ headers }) =>
      Option.match(HttpTraceContext.w3c(Headers.fromInput(headers)), {
        onNone: () => [],
        onSome: (span) => [{ span, attributes: {} }]
      })
    )
  })

const toResults = ({ acked: rows, failure }: Delivery): Effect.Effect<ReadonlyArray<PublishResult>> => {
  const refusal = failure === undefined ? missingAck : refusalOf(failure)
  return refusal === undefined
    ? Effect.die(failure?.cause)
    : Effect.succeed(rows.map((isAcked) => (isAcked ? acked : refusal)))
}

const topicState = (client: KafkaClient): Effect.Effect<TopicState> =>
  client.partitions.pipe(
    Effect.map((partitions): TopicState => ({ state: "ready", partitions })),
    Effect.catch((failure) =>
      Effect.succeed<TopicState>(
        hasCode(failure, code.unknownTopic) ? { state: "missing" } : { state: "unknown", reason: explain(failure) }
      )
    ),
    Effect.timeoutOrElse({
      duration: topicDeadline,
      orElse: () => Effect.succeed<TopicState>({ state: "unknown", reason: `no answer within ${topicDeadline}` })
    })
  )

const notCreated = (failure: KafkaFailure, replication: number): TopicNotCreated => {
  const why = explain(failure)
  if (hasCode(failure, code.topicAuthorization, code.clusterAuthorization)) {
    return new TopicNotCreated({ reason: `this user may not create the topic (${why})` })
  }
  if (hasCode(failure, code.invalidReplication)) {
    return new TopicNotCreated({ reason: `fewer than ${replication} brokers are there to hold a copy each (${why})` })
  }
  return new TopicNotCreated({ reason: why })
}

const createTopic =
  (client: KafkaClient): Service["createTopic"] =>
  (partitions, replication) =>
    client.createTopic(partitions, replication).pipe(
      Effect.catch((failure) =>
        hasCode(failure, code.topicExists) ? Effect.void : Effect.fail(notCreated(failure, replication))
      ),
      Effect.timeoutOrElse({
        duration: createDeadline,
        orElse: () => new TopicNotCreated({ reason: `the brokers did not answer within ${createDeadline}` })
      }),
      // Brokers hear of it one after the other.
      Effect.andThen(Effect.ignore(Effect.retry(client.partitions, soon)))
    )

const soon = Schedule.max([Schedule.spaced("100 millis"), Schedule.during(topicDeadline)])

type Service = EventPublisher["Service"]

export const make = Effect.fnUntraced(function* (
  client: KafkaClient,
  { budget, idle = "30 seconds" }: Options
): Effect.fn.Return<Service, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const producer = yield* RcRef.make({ acquire: client.producer, idleTimeToLive: idle })
  const oneAtATime = yield* Semaphore.make(1)
  let health: PublisherHealth = { status: "up" }

  // The old one is out of use at once and closes in the background.
  const renew = Effect.forkIn(RcRef.invalidate(producer), scope, { startImmediately: true })

  const sent = (batch: Batch): Effect.Effect<ReadonlyArray<PublishResult>> =>
    Effect.scoped(Effect.flatMap(RcRef.get(producer), ({ send }) => send(batch))).pipe(
      Effect.catch((failure) => Effect.succeed<Delivery>({ acked: batch.map(() => false), failure })),
      Effect.flatMap(toResults),
      // The deadline may interrupt it, the caller may not.
      Effect.interruptible,
      Effect.timeoutOrElse({ duration: budget, orElse: () => Effect.succeed(batch.map(() => late(budget))) }),
      Effect.onExit((exit) =>
        Exit.isSuccess(exit) && exit.value.every(({ outcome }) => outcome === "acked") ? Effect.void : renew
      ),
      traced(batch),
      Effect.tap((results) =>
        Effect.sync(() => {
          health = healthAfter(results)
        })
      )
    )

  return {
    publish: (batch) =>
      batch.length === 0 ? Effect.succeed([]) : oneAtATime.withPermits(1)(Effect.uninterruptible(sent(batch))),
    health: Effect.sync(() => health),
    topic: topicState(client),
    createTopic: createTopic(client)
  }
})
