/** `topic create`: the topic of the events, on the brokers of KAFKA_BROKERS. */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { topic as name } from "../../domain/ConferenceEnded.ts"
import * as Production from "../../layers/Production.ts"
import { EventPublisher, TopicNotCreated } from "../../services/EventPublisher.ts"
import * as Environment from "./Environment.ts"

const positive = (flag: string, fallback: number, description: string) =>
  Flag.Int(flag).pipe(
    Flag.filter(
      (value) => value > 0,
      () => "a whole number above 0"
    ),
    Flag.withDefault(fallback),
    Flag.withDescription(description)
  )

const flags = {
  partitions: positive("partitions", 6, "Fixed for good: another number sends keys elsewhere (default 6)"),
  replication: positive("replication", 3, "Copies of each partition, at most the number of brokers (default 3)")
}

const handle = Effect.fnUntraced(function* ({ partitions, replication }: Command.Command.Config.Infer<typeof flags>) {
  const settings = yield* Environment.settings
  if (Option.isNone(settings.kafka)) {
    return yield* new TopicNotCreated({ reason: "KAFKA_BROKERS is not set: there is no broker to create the topic on" })
  }
  yield* Effect.gen(function* () {
    const publisher = yield* EventPublisher
    const before = yield* publisher.topic
    if (before.state === "ready") {
      return yield* Environment.print(`${name} exists with ${before.partitions} partitions, nothing was done`)
    }
    yield* publisher.createTopic(partitions, replication)
    yield* Environment.print(`${name} created with ${partitions} partitions, replication ${replication}`)
  }).pipe(
    Effect.provide(Production.publisher(settings.kafka.value)),
    Effect.scoped,
    Effect.provide(Environment.logging(settings))
  )
})

const create = Command.make("create", flags, handle).pipe(
  Command.withDescription("Create the topic of the events; an existing one is left as it is"),
  Command.withExamples([
    { command: "conference-room-reaper topic create --replication 1", description: "On a single broker" }
  ])
)

export const topic = Command.make("topic").pipe(
  Command.withDescription("The Kafka topic of the events"),
  Command.withSubcommands([create])
)
