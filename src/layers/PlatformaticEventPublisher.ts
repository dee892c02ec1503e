/** EventPublisher (X1) on @platformatic/kafka, the other client. */
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
    // It takes a second to load.
    Effect.promise(() => import("./PlatformaticClient.ts")).pipe(
      Effect.flatMap(({ makeClient }) => make(makeClient(kafka), options))
    )
  )
