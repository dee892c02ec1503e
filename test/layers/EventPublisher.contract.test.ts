/** The publisher in memory keeps the contract that those on brokers are held to. */
import { layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as MemoryEventPublisher from "../fakes/MemoryEventPublisher.ts"
import { Consumer, publisherContract } from "../kafka/PublisherContract.ts"

const consumer = Layer.effect(
  Consumer,
  Effect.map(MemoryEventPublisher.EventPublisherControl, ({ log }) => ({ published: log }))
)

layer(Layer.provideMerge(consumer, MemoryEventPublisher.layer))("EventPublisher in memory", publisherContract)
