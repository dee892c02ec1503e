/** What keeps a test from having its Kafka; the message says what was tried and what was answered. */
import { Schema } from "effect"

export class KafkaUnavailable extends Schema.TaggedError<KafkaUnavailable>()("KafkaUnavailable", {
  message: Schema.String
}) {}
