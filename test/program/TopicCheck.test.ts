/** The look at the topic: said once, also where the brokers come after the worker. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Logger } from "effect"
import { TestClock } from "effect/testing"
import * as TopicCheck from "../../src/program/TopicCheck.ts"
import { EventPublisher, type TopicState } from "../../src/services/EventPublisher.ts"

const away: TopicState = { state: "unknown", reason: "connect ECONNREFUSED" }

/** What is said when the looks find these, one after the other. */
const saidOf = Effect.fnUntraced(function* (...states: ReadonlyArray<TopicState>) {
  const said: Array<string> = []
  const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
    said.push(`${logLevel}: ${[message].flat().join(" ")}`)
  })
  let looks = 0
  const checking = yield* Effect.forkChild(
    TopicCheck.warn.pipe(
      Effect.provideService(EventPublisher, {
        publish: () => Effect.succeed([]),
        health: Effect.succeed({ status: "up" } as const),
        topic: Effect.sync(() => states[looks++] ?? away),
        createTopic: () => Effect.void
      }),
      Effect.provide(Logger.layer([logger]))
    ),
    { startImmediately: true }
  )
  yield* TestClock.adjust("10 minutes")
  return { said, looks, isOver: checking.pollUnsafe() !== undefined, stop: Fiber.interrupt(checking) }
})

const unseen = "Warn: the topic could not be looked at, events wait until the broker answers"
const missing = "Warn: the topic does not exist, events wait; it is created by: npm run -s reaper -- topic create"

describe("the look at the topic", () => {
  it.effect("is one where a broker answers", () =>
    Effect.gen(function* () {
      const { said, looks, isOver } = yield* saidOf({ state: "ready", partitions: 6 })
      assert.deepStrictEqual({ said, looks, isOver }, { said: ["Info: the topic is there"], looks: 1, isOver: true })
    })
  )

  it.effect("names the command for a missing topic, also when the broker answers late", () =>
    Effect.gen(function* () {
      const { said, looks, isOver } = yield* saidOf(away, away, away, { state: "missing" })
      assert.deepStrictEqual({ said, looks, isOver }, { said: [unseen, missing], looks: 4, isOver: true })
    })
  )

  it.effect("says once that no broker answers, however long that lasts", () =>
    Effect.gen(function* () {
      const { said, isOver, stop } = yield* saidOf()
      assert.deepStrictEqual({ said, isOver }, { said: [unseen], isOver: false })
      yield* stop
    })
  )
})
