/** Brokers that are away, silent or restarted under the worker: nothing is lost, and no room is closed late (X1). */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Schedule } from "effect"
import { topic } from "../../src/domain/ConferenceEnded.ts"
import { type Process, start } from "../e2e/Process.ts"
import { assertCalm, type Client, isLong, metricBecomes, note, pending, stop, world } from "./DeliveryWorld.ts"
import { type Cluster, cluster } from "./support/Cluster.ts"
import { kafka3, kafka4 } from "./support/Distribution.ts"
import { kafkaProxy } from "./support/KafkaProxy.ts"
import { readTopic } from "./support/Kcat.ts"
import { requirements, titled } from "./support/Requirements.ts"

const lacking = requirements("cluster", "kcat")
const clients: ReadonlyArray<Client> = ["kafkajs", "platformatic"]
const first: Client = "kafkajs"
const runs = "messenger_conf_reaper_run_total"

const atOnce = 400

/** So many rows in steps, as a busy messenger would write them. */
const trickle = (append: (count: number) => Effect.Effect<void>, rows: number) =>
  append(20).pipe(Effect.repeat({ times: rows / 20 - 1, schedule: Schedule.spaced("20 millis") }))

type World = Effect.Success<ReturnType<typeof world>>

/** Rows are written and published while `disturb` goes on, `times` times over. */
const underDrain = Effect.fnUntraced(function* (
  { append, drained, left, worker }: World,
  rows: number,
  times: number,
  disturb: (round: number) => Effect.Effect<void, unknown>
) {
  const running = yield* worker()
  const before = performance.now()
  let met = 0
  for (let round = 0; round < times; round++) {
    const writing = yield* Effect.forkChild(trickle(append, rows / times - atOnce), { startImmediately: true })
    yield* Effect.sleep("300 millis")
    // Rows that are on their way when it happens, each time at another point of it.
    yield* append(atOnce)
    yield* Effect.sleep(Duration.millis((round % 8) * 5))
    met += yield* left
    yield* disturb(round)
    yield* Fiber.join(writing)
  }
  yield* drained("3 minutes")
  yield* assertCalm(running)
  return { running, met, seconds: Math.round((performance.now() - before) / 100) / 10 }
})

const restarts = (kafka: Cluster, id: number, round: number) =>
  Effect.andThen(round % 2 === 0 ? kafka.killNode(id) : kafka.stopNode(id), kafka.startNode(id))

const combinations = isLong
  ? clients.flatMap((client) => [kafka4, kafka3].map((version) => ({ client, version })))
  : [{ client: first, version: kafka4 }]

const restartTests = () => {
  it.live.each(combinations)(
    "lose nothing when the only one is restarted again and again: $client, $version",
    ({ client, version }) =>
      Effect.gen(function* () {
        const kafka = yield* cluster({ version })
        yield* kafka.createTopic(topic, 6)
        const place = yield* world(kafka.brokers, client)
        const [rows, times] = isLong ? [20_000, 10] : [2_000, 2]
        const { running, met, seconds } = yield* underDrain(place, rows, times, (round) => restarts(kafka, 1, round))
        yield* metricBecomes(running, pending, 0)
        yield* note(`restarts ${version} ${client}`, {
          rows,
          times,
          "rows waiting then": met,
          seconds,
          ...(yield* place.audit(kafka.brokers))
        })
        yield* stop(running)
      })
  )

  it.live.each(isLong ? clients : [first])("lose nothing when three are restarted in turn: %s", (client) =>
    Effect.gen(function* () {
      const kafka = yield* cluster({ nodes: 3 })
      yield* kafka.createTopic(topic, 6, 3)
      const place = yield* world(kafka.brokers, client)
      const [rows, times] = isLong ? [18_000, 9] : [1_800, 3]
      const { running, met, seconds } = yield* underDrain(place, rows, times, (round) =>
        Effect.gen(function* () {
          yield* kafka.stopNode((round % 3) + 1)
          yield* kafka.startNode((round % 3) + 1)
          yield* kafka.awaitPartitions(topic, (all) => all.every(({ inSync }) => inSync.length === 3))
        })
      )
      yield* note(`rolling restart ${client}`, {
        rows,
        times,
        "rows waiting then": met,
        seconds,
        ...(yield* place.audit(kafka.brokers))
      })
      yield* stop(running)
    })
  )
}

const health = (running: Process) =>
  Effect.map(running.get("/health/ready"), ({ status, body }) => ({ status, ...JSON.parse(body) }))

const awayAtStart = (client: Client) =>
  Effect.gen(function* () {
    const kafka = yield* cluster()
    yield* kafka.createTopic(topic, 6)
    yield* kafka.killNode(1)
    const { append, audit, drained, env, rooms } = yield* world(kafka.brokers, client)
    yield* append(100)
    const reaping = { ...env, REAPER_POLLING_INTERVAL: "500ms" }
    const stopping = yield* start(["run"], reaping)
    yield* stopping.waitForLog("outbox delivery is held up")
    const stopped = yield* stop(stopping)
    const running = yield* start(["run"], reaping)
    yield* running.waitForLog("outbox delivery is held up")
    yield* running.waitForCount("cycle started", 2)
    const cycles = running.count("cycle started")
    const before = performance.now()
    yield* rooms.insertDue(20)
    yield* rooms.allEnded(20)
    const closed = Math.round(performance.now() - before)
    yield* running.waitForCount("cycle started", cycles + 10)
    const pace = Math.round((performance.now() - before) / (running.count("cycle started") - cycles))
    assert.isBelow(closed, 2_000)
    assert.isBelow(pace, 700)
    const degraded = yield* health(running)
    assert.deepInclude(degraded, { status: "degraded" })
    assert.strictEqual(degraded.delivery.outbox.status, "degraded")
    assert.notStrictEqual(degraded.delivery.outbox.reason, "")
    assert.strictEqual((yield* running.get("/health/ready")).status, 200)
    yield* assertCalm(running)
    const lines = running.said()
    yield* kafka.startNode(1)
    const [took] = yield* Effect.timed(drained())
    assert.deepInclude(yield* health(running), { status: "ready" })
    yield* note(`away at start ${client}`, {
      "SIGTERM ms": stopped,
      "20 rooms closed after ms": closed,
      "cycle every ms": pace,
      "drained after ms": Math.round(Duration.toMillis(took)),
      reason: degraded.delivery.outbox.reason,
      lines,
      runs: yield* running.metric(runs)
    })
    yield* audit(kafka.brokers)
    // The worker's own events of the closed rooms, too.
    assert.lengthOf(yield* readTopic(kafka.brokers, topic), 120)
    yield* stop(running)
  })

const silentTests = () => {
  it.live.each(isLong ? clients : [first])(
    "hold up the end until the send that is under way is answered, and then it is marked: %s",
    (client) =>
      Effect.gen(function* () {
        const kafka = yield* cluster()
        yield* kafka.createTopic(topic, 6)
        const proxy = yield* kafkaProxy(kafka.brokers)
        const place = yield* world(proxy.brokers, client)
        const running = yield* place.worker()
        yield* place.append(20)
        yield* place.drained()
        const { produceRequests } = proxy.seen()
        yield* proxy.silence("answers")
        yield* place.append(20)
        yield* proxy.awaitSeen((seen) => seen.produceRequests > produceRequests)
        yield* running.kill("SIGTERM")
        yield* Effect.sleep("1 second")
        assert.strictEqual(yield* place.left, 20)
        yield* proxy.mend
        const { code } = yield* running.ended
        assert.deepStrictEqual([code, yield* place.left], [0, 0])
        yield* note(`SIGTERM with a send under way ${client}`, yield* place.audit(kafka.brokers))
        const again = yield* place.worker()
        yield* place.append(20)
        yield* place.drained()
        const seen = proxy.seen()
        yield* proxy.silence("answers")
        yield* place.append(20)
        yield* proxy.awaitSeen((now) => now.produceRequests > seen.produceRequests)
        const silent = yield* stop(again)
        assert.isBelow(silent, 25_000)
        assert.strictEqual(yield* place.left, 20)
        yield* note(`SIGTERM, answers lost ${client}`, {
          "exit ms": silent,
          ...(yield* place.auditPublished(kafka.brokers))
        })
      })
  )

  it.live.each(isLong ? clients : [first])("do not keep the worker from its end where they never speak: %s", (client) =>
    Effect.gen(function* () {
      const kafka = yield* cluster()
      yield* kafka.createTopic(topic, 6)
      const proxy = yield* kafkaProxy(kafka.brokers)
      yield* proxy.silence()
      const place = yield* world(proxy.brokers, client)
      yield* place.append(20)
      const running = yield* place.worker()
      yield* place.delivering
      // By then the send has begun as well.
      yield* running.waitForLog("the topic could not be looked at")
      const silent = yield* stop(running)
      assert.isBelow(silent, 25_000)
      assert.strictEqual(yield* place.left, 20)
      yield* note(`SIGTERM, black hole ${client}`, { "exit ms": silent })
    })
  )
}

describe.skipIf(lacking.length > 0)(titled("brokers under the worker", lacking), () => {
  it.live.each(isLong ? clients : [first])(
    "that are away at its start let it close rooms on time, are reported, and get all rows when they come: %s",
    awayAtStart
  )
  restartTests()
  silentTests()
})
