/**
 * What becomes of rows, and of the process, when brokers fail in the middle of a send: on the mock cluster, which fails on
 * command, and behind the proxy, which loses what a test wants to be lost. Nothing may escape as an unhandled rejection
 *: that alone fails a run.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Duration, Effect, Fiber, Layer, Schedule } from "effect"
import { topic } from "../../src/domain/ConferenceEnded.ts"
import { EventPublisher, type PublishResult } from "../../src/services/EventPublisher.ts"
import { clients, event, events, messageIds, settings } from "./Events.ts"
import { javaPartitions } from "./JavaPartitions.ts"
import { kafkaProxy } from "./support/KafkaProxy.ts"
import { KafkaUnavailable } from "./support/KafkaUnavailable.ts"
import { readTopic } from "./support/Kcat.ts"
import { mockCluster } from "./support/MockCluster.ts"
import { freePort } from "./support/Ports.ts"
import { requirements, titled } from "./support/Requirements.ts"
import { apiKey } from "./support/Wire.ts"

const lacking = requirements("mock", "kcat")

const outcomes = (results: ReadonlyArray<PublishResult>) => results.map(({ outcome }) => outcome)

const idsIn = (brokers: ReadonlyArray<string>) => Effect.map(readTopic(brokers, topic), messageIds)

const keysOf = (partition: number) =>
  javaPartitions.filter(([, , ofSix]) => ofSix === partition).map(([key]) => ({ key }))

const mockWithTopic = Effect.fnUntraced(function* (brokers = 3) {
  const mock = yield* mockCluster({ brokers })
  yield* mock.createTopic(topic, 6, brokers)
  return mock
})

const sockets = () => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length

const awaitSockets = (count: number) =>
  Effect.sync(sockets).pipe(
    Effect.filterOrFail(
      (open) => open <= count,
      (open) => new KafkaUnavailable({ message: `${open} sockets are open, ${count} were before` })
    ),
    Effect.retry(Schedule.max([Schedule.spaced("20 millis"), Schedule.during("5 seconds")]))
  )

for (const [name, layer] of clients) {
  const publisher = (brokers: ReadonlyArray<string>, budget: Duration.Input = "20 seconds") =>
    Effect.map(Layer.build(layer({ kafka: settings(brokers), budget })), Context.get(EventPublisher))

  describe.skipIf(lacking.length > 0)(titled(`${name} on the mock cluster`, lacking), () => {
    it.live("acks no row that is not in the topic when a leader moves in the middle of a batch", () =>
      Effect.gen(function* () {
        const mock = yield* mockWithTopic(2)
        yield* mock.setLeader(topic, 0, 1)
        yield* mock.setLeader(topic, 1, 2)
        const { publish } = yield* publisher(mock.brokers)
        const rows = [...keysOf(0), ...keysOf(1)].map((key, n) => event(n, key))
        yield* publish(rows)
        yield* mock.setLeader(topic, 1, 1)
        const again = rows.map(({ key }, n) => event(n, { key }))
        const results = yield* publish(again)
        const isAcked = (_: unknown, index: number) => results[index]?.outcome === "acked"
        const [there, left] = [again.filter(isAcked), again.filter((row, index) => !isAcked(row, index))]
        assert.includeMembers(yield* idsIn(mock.brokers), messageIds(there))
        // This client forgets the rows of the partition that moved, and says that all went well.
        if (name === "kafkajs") assert.deepStrictEqual(messageIds(left), messageIds(again.slice(keysOf(0).length)))
        assert.deepStrictEqual(new Set(outcomes(yield* publish(left))).size, left.length > 0 ? 1 : 0)
        assert.includeMembers(yield* idsIn(mock.brokers), messageIds(again))
      })
    )

    it.live.each([
      ...[2, 3, 5, 6, 7, 8, 9, 13, 19, 20, 45, 46, 47, 56, 59, 74, 75, 89, 90].map(
        (code) => ["unavailable", code] as const
      ),
      ...[17, 21, 29, 31, 33, 34, 35, 53, 58, 76].map((code) => ["misconfigured", code] as const),
      ...[10, 18, 32, 44, 87].map((code) => ["rejected", code] as const)
    ])("calls a row %s on error code %i, and sends it when the error is gone", ([outcome, code]) =>
      Effect.gen(function* () {
        const mock = yield* mockWithTopic(1)
        const { health, publish } = yield* publisher(mock.brokers)
        const rows = [event(1)] as const
        yield* mock.pushErrors(
          apiKey.produce,
          Array.from({ length: 20 }, () => code)
        )
        const [result] = yield* publish(rows)
        assert.strictEqual(result?.outcome, outcome)
        assert.notStrictEqual(result?.reason, "")
        assert.strictEqual((yield* health).status, outcome === "rejected" ? "up" : "degraded")
        yield* mock.clearErrors(apiKey.produce)
        assert.deepStrictEqual(outcomes(yield* publish(rows)), ["acked"])
        assert.deepStrictEqual(yield* health, { status: "up" })
      })
    )

    it.live("delivers when brokers that were down at the start come up, with no restart", () =>
      Effect.gen(function* () {
        const mock = yield* mockWithTopic()
        const { publish } = yield* publisher(mock.brokers)
        const ids = [1, 2, 3]
        yield* Effect.forEach(ids, mock.brokerDown)
        const rows = events(10)
        const results = yield* publish(rows)
        assert.deepStrictEqual(new Set(outcomes(results)), new Set(["unavailable"]))
        yield* Effect.forEach(ids, mock.brokerUp)
        assert.deepStrictEqual(new Set(outcomes(yield* publish(rows))), new Set(["acked"]))
      })
    )

    it.live("answers in time, and again and again, when nobody listens", () =>
      Effect.gen(function* () {
        const before = sockets()
        const { publish, topic } = yield* publisher([`127.0.0.1:${yield* freePort}`], "3 seconds")
        for (const _ of [1, 2, 3]) {
          const [took, results] = yield* Effect.timed(publish(events(2)))
          assert.deepStrictEqual(outcomes(results), ["unavailable", "unavailable"])
          assert.isBelow(Duration.toMillis(took), 3_500)
        }
        assert.strictEqual((yield* topic).state, "unknown")
        yield* awaitSockets(before)
      })
    )

    it.live("keeps no socket of the producers that it renewed", () =>
      Effect.gen(function* () {
        const mock = yield* mockWithTopic()
        const before = sockets()
        const { publish } = yield* publisher(mock.brokers)
        for (const _ of Array.from({ length: 10 })) {
          yield* mock.pushErrors(apiKey.produce, [10, 10, 10])
          yield* publish(events(12))
          yield* mock.clearErrors(apiKey.produce)
        }
        yield* awaitSockets(before)
      })
    )
  })

  describe.skipIf(lacking.length > 0)(titled(`${name} behind a network that loses things`, lacking), () => {
    const proxied = Effect.fnUntraced(function* (budget: Duration.Input) {
      const mock = yield* mockWithTopic()
      const proxy = yield* kafkaProxy(mock.brokers)
      return { mock, proxy, ...(yield* publisher(proxy.brokers, budget)) }
    })

    it.live("sends once more when an ack is lost: a row may come twice, none is missing (X1)", () =>
      Effect.gen(function* () {
        const { mock, proxy, publish } = yield* proxied("20 seconds")
        yield* proxy.loseAnswers(1, "reset")
        const rows = events(20)
        assert.deepStrictEqual(new Set(outcomes(yield* publish(rows))), new Set(["acked"]))
        assert.includeMembers(yield* idsIn(mock.brokers), messageIds(rows))
        assert.isAtLeast(proxy.seen().lostAnswers, 1)
      })
    )

    it.live("gives rows up at the deadline when the brokers are silent, and never hears of them again", () =>
      Effect.gen(function* () {
        const { mock, proxy, health, publish } = yield* proxied("2 seconds")
        const before = sockets()
        yield* publish(events(20))
        yield* proxy.silence("everything")
        const lost = events(5)
        const [took, results] = yield* Effect.timed(publish(lost))
        assert.deepStrictEqual(
          results,
          lost.map(() => ({ outcome: "unavailable" as const, reason: "no answer within 2s" }))
        )
        assert.isBelow(Duration.toMillis(took), 2_500)
        assert.strictEqual((yield* health).status, "degraded")
        const { produceRequests } = proxy.seen()
        yield* proxy.mend
        // The proxy's own sockets, too, end with what was under way.
        yield* awaitSockets(before)
        assert.isAtMost(proxy.seen().produceRequests - produceRequests, 3)
        const rows = events(5)
        assert.deepStrictEqual(new Set(outcomes(yield* publish(rows))), new Set(["acked"]))
        assert.includeMembers(yield* idsIn(mock.brokers), messageIds(rows))
      })
    )

    it.live("tells of a silent broker's topic within its time", () =>
      Effect.gen(function* () {
        const { proxy, publish, topic } = yield* proxied("2 seconds")
        yield* publish(events(1))
        yield* proxy.silence("everything")
        const [took, state] = yield* Effect.timed(topic)
        assert.deepStrictEqual(state, { state: "unknown", reason: "no answer within 5 seconds" })
        assert.isBelow(Duration.toMillis(took), 5_500)
      })
    )

    it.live("cannot be interrupted while a send may still publish", () =>
      Effect.gen(function* () {
        const { proxy, publish } = yield* proxied("20 seconds")
        yield* publish(events(20))
        const before = proxy.seen()
        yield* proxy.silence("answers")
        const sending = yield* Effect.forkChild(publish(events(1)), { startImmediately: true })
        yield* proxy.awaitSeen(({ produceRequests }) => produceRequests > before.produceRequests)
        const interrupting = yield* Effect.forkChild(Fiber.interrupt(sending), { startImmediately: true })
        assert.isUndefined(sending.pollUnsafe())
        yield* proxy.mend
        yield* Fiber.join(interrupting)
        assert.strictEqual(proxy.seen().produceAnswers, before.produceAnswers + 1)
      })
    )
  })
}
