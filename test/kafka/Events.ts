import { randomUUID } from "node:crypto"
import { type Duration, type Layer, Option } from "effect"
import { topic } from "../../src/domain/ConferenceEnded.ts"
import * as KafkajsEventPublisher from "../../src/layers/KafkajsEventPublisher.ts"
import * as PlatformaticEventPublisher from "../../src/layers/PlatformaticEventPublisher.ts"
import type { EventPublisher } from "../../src/services/EventPublisher.ts"
import type { PendingEvent } from "../../src/services/IntegrationOutbox.ts"
import type { KafkaSettings } from "../../src/services/SettingsKafka.ts"

/** A row like those of the outbox: about a kilobyte, with its five headers. */
export const event = (
  n: number,
  { key = randomUUID(), length = 700 }: { readonly key?: string; readonly length?: number } = {}
): PendingEvent => ({
  id: BigInt(n),
  key,
  value: JSON.stringify({ ConferenceId: randomUUID(), n, note: "встреча", fill: "x".repeat(length) }),
  headers: {
    "message-id": randomUUID(),
    "event-type": topic,
    "correlation-id": randomUUID(),
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "content-type": "application/json"
  },
  attempts: 0,
  createdAt: 0n as PendingEvent["createdAt"]
})

export const events = (count: number, from = 0): ReadonlyArray<PendingEvent> =>
  Array.from({ length: count }, (_, index) => event(from + index))

export const messageIds = (rows: ReadonlyArray<{ readonly headers: Readonly<Record<string, string>> }>) =>
  rows.map(({ headers }) => headers["message-id"])

export const settings = (brokers: ReadonlyArray<string>, more: Partial<KafkaSettings> = {}): KafkaSettings => ({
  brokers,
  client: "kafkajs",
  ssl: Option.none(),
  sasl: Option.none(),
  ...more
})

export const clients: ReadonlyArray<
  readonly [
    name: string,
    layer: (options: {
      kafka: KafkaSettings
      budget: Duration.Input
      idle?: Duration.Input
    }) => Layer.Layer<EventPublisher>
  ]
> = [
  ["kafkajs", KafkajsEventPublisher.layer],
  ["platformatic", PlatformaticEventPublisher.layer]
]
