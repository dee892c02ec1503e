/** What both clients have in common, on a client that does as it is told. */
import { assert, describe, it } from "@effect/vitest"
import { ProtocolError } from "@platformatic/kafka"
import { Deferred, Effect, Exit, Fiber, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { KafkaFailure } from "../../src/layers/KafkaErrors.ts"
import { type Delivery, type KafkaClient, make } from "../../src/layers/KafkaPublisher.ts"
import { acked } from "../../src/services/EventPublisher.ts"
import { event, events } from "../kafka/Events.ts"

type Send = (batch: ReadonlyArray<unknown>) => Effect.Effect<Delivery, KafkaFailure>

const sendsAll: Send = (batch) => Effect.succeed({ acked: batch.map(() => true) })
const failsWith = (cause: unknown) => new KafkaFailure({ cause })

const outage = failsWith(new ProtocolError(6))
const refusedBy = (code: number) => Effect.fail(failsWith(new ProtocolError(code)))

/** `send` may change from one send to the next. */
const publisherOn = Effect.fnUntraced(function* (more: Partial<KafkaClient> = {}) {
  const state = { opened: 0, closed: 0, send: sendsAll }
  const client: KafkaClient = {
    producer: Effect.acquireRelease(
      Effect.sync(() => {
        state.opened += 1
        return { send: (batch: ReadonlyArray<unknown>) => state.send(batch) }
      }),
      () => Effect.sync(() => (state.closed += 1))
    ),
    partitions: Effect.succeed(6),
    createTopic: () => Effect.void,
    ...more
  }
  return { state, ...(yield* make(client, { budget: "20 seconds" })) }
})

describe("publish", () => {
  it.effect("keeps its producer from one send to the next", () =>
    Effect.gen(function* () {
      const { state, publish } = yield* publisherOn()
      yield* publish(events(3))
      yield* publish(events(3))
      assert.deepInclude(state, { opened: 1, closed: 0 })
    })
  )

  it.effect("sends one batch at a time, in the order of asking", () =>
    Effect.gen(function* () {
      const { state, publish } = yield* publisherOn()
      const log: Array<string> = []
      const gate = yield* Deferred.make<void>()
      state.send = (batch) =>
        Effect.gen(function* () {
          log.push(`begin ${batch.length}`)
          yield* Deferred.await(gate)
          log.push(`end ${batch.length}`)
          return { acked: batch.map(() => true) }
        })
      const first = yield* Effect.forkChild(publish(events(1)), { startImmediately: true })
      const second = yield* Effect.forkChild(publish(events(2)), { startImmediately: true })
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(first)
      yield* Fiber.join(second)
      assert.deepStrictEqual(log, ["begin 1", "end 1", "begin 2", "end 2"])
    })
  )

  it.effect("holds back the rows that no answer speaks of, and takes a new producer", () =>
    Effect.gen(function* () {
      const { state, publish, health } = yield* publisherOn()
      state.send = () => Effect.succeed({ acked: [true, false, true] })
      const results = yield* publish(events(3))
      assert.deepStrictEqual(
        results.map(({ outcome }) => outcome),
        ["acked", "unavailable", "acked"]
      )
      assert.strictEqual((yield* health).status, "degraded")
      assert.deepInclude(state, { opened: 1, closed: 1 })
      state.send = sendsAll
      assert.deepStrictEqual(yield* publish([event(1)]), [acked])
      assert.deepStrictEqual(yield* health, { status: "up" })
      assert.deepInclude(state, { opened: 2, closed: 1 })
    })
  )

  it.effect("keeps the acks that a failed send brought along", () =>
    Effect.gen(function* () {
      const { state, publish } = yield* publisherOn()
      state.send = () => Effect.succeed({ acked: [true, false], failure: failsWith(new ProtocolError(10)) })
      const results = yield* publish(events(2))
      assert.deepStrictEqual(
        results.map(({ outcome }) => outcome),
        ["acked", "rejected"]
      )
      assert.strictEqual(state.closed, 1)
    })
  )

  it.effect("answers at the end of its budget when the broker does not, and takes a new producer", () =>
    Effect.gen(function* () {
      const { state, publish, health } = yield* publisherOn()
      state.send = () => Effect.never
      const sending = yield* Effect.forkChild(publish(events(2)), { startImmediately: true })
      yield* TestClock.adjust("20 seconds")
      const late = { outcome: "unavailable" as const, reason: "no answer within 20s" }
      assert.deepStrictEqual(yield* Fiber.join(sending), [late, late])
      assert.deepStrictEqual(yield* health, { status: "degraded", reason: late.reason })
      state.send = sendsAll
      yield* publish(events(1))
      assert.deepInclude(state, { opened: 2, closed: 1 })
    })
  )

  it.effect("answers at the end of its budget when it cannot even connect, and connects anew", () =>
    Effect.gen(function* () {
      const attempts = { count: 0 }
      const { publish } = yield* publisherOn({
        producer: Effect.suspend(() => {
          attempts.count += 1
          return attempts.count === 1 ? Effect.never : Effect.succeed({ send: sendsAll })
        })
      })
      const sending = yield* Effect.forkChild(publish([event(1)]), { startImmediately: true })
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual((yield* Fiber.join(sending))[0]?.outcome, "unavailable")
      assert.deepStrictEqual(yield* publish([event(1)]), [acked])
    })
  )

  it.effect("tries to connect again at the next send when it could not", () =>
    Effect.gen(function* () {
      const attempts = { count: 0 }
      const { publish } = yield* publisherOn({
        producer: Effect.suspend((): Effect.Effect<{ send: Send }, KafkaFailure, Scope.Scope> => {
          attempts.count += 1
          return attempts.count < 3 ? Effect.fail(outage) : Effect.succeed({ send: sendsAll })
        })
      })
      const outcomes = yield* Effect.replicateEffect(publish([event(1)]), 4)
      assert.deepStrictEqual(
        outcomes.map(([result]) => result?.outcome),
        ["unavailable", "unavailable", "acked", "acked"]
      )
      assert.strictEqual(attempts.count, 3)
    })
  )

  it.effect("is not interrupted before the broker has answered", () =>
    Effect.gen(function* () {
      const { state, publish, health } = yield* publisherOn()
      const answer = yield* Deferred.make<Delivery>()
      state.send = () => Deferred.await(answer)
      const sending = yield* Effect.forkChild(publish([event(1)]), { startImmediately: true })
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(sending), { startImmediately: true })
      yield* Effect.yieldNow
      assert.isUndefined(sending.pollUnsafe())
      yield* Deferred.succeed(answer, { acked: [true] })
      yield* Fiber.join(interrupting)
      assert.deepStrictEqual(yield* health, { status: "up" })
      assert.strictEqual(state.closed, 0)
    })
  )

  it.effect("dies of an error of our own code, marks no row, and sends on (T7)", () =>
    Effect.gen(function* () {
      const { state, publish } = yield* publisherOn()
      state.send = () => Effect.fail(failsWith(new TypeError("x is not a function")))
      const exit = yield* Effect.exit(publish([event(1)]))
      assert.isTrue(Exit.hasDies(exit))
      state.send = sendsAll
      assert.deepStrictEqual(yield* publish([event(1)]), [acked])
      assert.deepInclude(state, { opened: 2, closed: 1 })
    })
  )

  it.effect("disconnects after 30 s without a send", () =>
    Effect.gen(function* () {
      const { state, publish } = yield* publisherOn()
      yield* publish([event(1)])
      yield* TestClock.adjust("29 seconds")
      yield* publish([event(1)])
      yield* TestClock.adjust("29 seconds")
      assert.deepInclude(state, { opened: 1, closed: 0 })
      yield* TestClock.adjust("1 second")
      assert.deepInclude(state, { opened: 1, closed: 1 })
      yield* publish([event(1)])
      assert.deepInclude(state, { opened: 2, closed: 1 })
    })
  )

  it.effect("leaves no producer behind", () =>
    Effect.gen(function* () {
      const { state, publish } = yield* Effect.scoped(Effect.tap(publisherOn(), ({ publish }) => publish([event(1)])))
      assert.deepInclude(state, { opened: 1, closed: 1 })
      assert.isFunction(publish)
    })
  )
})

describe("the topic", () => {
  it.effect("is missing, or unknown with a reason, or ready", () =>
    Effect.gen(function* () {
      const stateOf = (partitions: KafkaClient["partitions"]) =>
        Effect.flatMap(publisherOn({ partitions }), ({ topic }) => topic)
      assert.deepStrictEqual(yield* stateOf(Effect.succeed(6)), { state: "ready", partitions: 6 })
      assert.deepStrictEqual(yield* stateOf(refusedBy(3)), { state: "missing" })
      const unknown = yield* stateOf(refusedBy(29))
      assert.strictEqual(unknown.state, "unknown")
      assert.include(JSON.stringify(unknown), "TOPIC_AUTHORIZATION_FAILED")
    })
  )

  it.effect("is unknown after 5 s of silence", () =>
    Effect.gen(function* () {
      const { topic } = yield* publisherOn({ partitions: Effect.never })
      const asking = yield* Effect.forkChild(topic, { startImmediately: true })
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* Fiber.join(asking), { state: "unknown", reason: "no answer within 5 seconds" })
    })
  )

  it.effect.each([
    [29, /may not create the topic \(TOPIC_AUTHORIZATION_FAILED/],
    [31, /may not create the topic \(CLUSTER_AUTHORIZATION_FAILED/],
    [38, /fewer than 3 brokers are there to hold a copy each \(INVALID_REPLICATION_FACTOR/],
    [44, /POLICY_VIOLATION/]
  ] as const)("says in plain words why it was not created: %i", ([code, text]) =>
    Effect.gen(function* () {
      const { createTopic } = yield* publisherOn({ createTopic: () => refusedBy(code) })
      assert.match((yield* Effect.flip(createTopic(6, 3))).message, text)
    })
  )

  it.effect("is left as it is when it exists", () =>
    Effect.gen(function* () {
      const { createTopic } = yield* publisherOn({ createTopic: () => refusedBy(36) })
      yield* createTopic(6, 3)
    })
  )

  it.effect("is not waited for longer than 15 s", () =>
    Effect.gen(function* () {
      const { createTopic } = yield* publisherOn({ createTopic: () => Effect.never })
      const creating = yield* Effect.forkChild(Effect.flip(createTopic(6, 3)), { startImmediately: true })
      yield* TestClock.adjust("15 seconds")
      assert.match((yield* Fiber.join(creating)).message, /did not answer within 15 seconds/)
    })
  )
})
