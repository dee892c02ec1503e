/**
 * How fast each client publishes to one broker of Kafka 4, through the publisher as the dispatcher uses it. Takes
 * KAFKA_BROKERS, or starts a broker of its own as the tests do. Results go to standard output.
 */
import { Console, Context, Duration, Effect, Layer } from "effect"
import { EventPublisher } from "../src/services/EventPublisher.ts"
import { clients, events, settings } from "../test/kafka/Events.ts"
import { anyBrokers } from "../test/kafka/support/Cluster.ts"

const batchSizes = [1, 100, 500]
const warmUp = 20
const length = "4 seconds"

const at = (sorted: ReadonlyArray<number>, share: number) => sorted[Math.floor(sorted.length * share)] ?? 0

const measure = Effect.fnUntraced(function* (publisher: EventPublisher["Service"], size: number) {
  const batch = events(size)
  const send = Effect.timed(publisher.publish(batch)).pipe(
    Effect.map(([took, results]) => {
      if (results.some(({ outcome }) => outcome !== "acked")) throw new Error(results[0]?.reason)
      return Duration.toMillis(took)
    })
  )
  yield* Effect.replicateEffect(send, warmUp, { discard: true })
  const times: Array<number> = []
  const before = process.cpuUsage()
  const start = performance.now()
  while (performance.now() - start < Duration.toMillis(length)) times.push(yield* send)
  const seconds = (performance.now() - start) / 1000
  const { user, system } = process.cpuUsage(before)
  const rows = times.length * size
  const sorted = times.toSorted((one, other) => one - other)
  return { rate: rows / seconds, p50: at(sorted, 0.5), p99: at(sorted, 0.99), cpu: (user + system) / rows }
})

const program = Effect.gen(function* () {
  const { brokers } = yield* anyBrokers
  yield* Console.log("client         batch    rows/s   p50 ms   p99 ms   CPU us/row")
  for (const [name, layer] of clients) {
    const services = yield* Layer.build(layer({ kafka: settings(brokers), budget: "20 seconds" }))
    const publisher = Context.get(services, EventPublisher)
    yield* publisher.createTopic(6, 1)
    for (const size of batchSizes) {
      const { rate, p50, p99, cpu } = yield* measure(publisher, size)
      const numbers = [rate.toFixed(0).padStart(8), ...[p50, p99, cpu].map((value) => value.toFixed(1).padStart(8))]
      yield* Console.log([name.padEnd(14), String(size).padStart(5), ...numbers].join(" "))
    }
  }
})

await Effect.runPromise(Effect.scoped(program))
