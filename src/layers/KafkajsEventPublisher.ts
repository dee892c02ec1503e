/** EventPublisher (X1) on kafkajs, the client by default. */
import { Effect, Layer } from "effect"
import { EventPublisher } from "../services/EventPublisher.ts"
import type { KafkaSettings } from "../services/SettingsKafka.ts"
import { make, type Options } from "./KafkaPublisher.ts"

/** Connects when there is something to send: it is built while the brokers are away, too. */
export const layer = ({
  kafka,
  ...options
}: { readonly kafka: KafkaSettings } & Options): Layer.Layer<EventPublisher> =>
  Layer.effect(
    EventPublisher,
    // Only a process that publishes pays for loading the client.
    Effect.promise(() => import("./KafkajsClient.ts")).pipe(
      Effect.flatMap(({ makeClient }) => makeClient(kafka)),
      Effect.flatMap((client) => make(client, options))
    )
  )
