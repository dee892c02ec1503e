/**
 * A process whose producer has nothing to do: publishes once through the client named, to the brokers named, waits, and
 * prints the milliseconds of CPU time that the wait took. Whatever stands on its standard error is too much.
 */
import { Context, Effect, Layer } from "effect"
import { EventPublisher } from "../../src/services/EventPublisher.ts"
import { clients, events, settings } from "./Events.ts"

const [, , name = "", brokers = "", seconds = "5"] = process.argv

const idle = Effect.gen(function* () {
  const [, layer] = yield* Effect.fromNullishOr(clients.find(([client]) => client === name))
  const built = yield* Layer.build(layer({ kafka: settings(brokers.split(",")), budget: "10 seconds" }))
  const results = yield* Context.get(built, EventPublisher).publish(events(100))
  // What the start has left to do is done by then.
  yield* Effect.sleep("1 second")
  const before = process.cpuUsage()
  yield* Effect.sleep(`${Number(seconds)} seconds`)
  const { user, system } = process.cpuUsage(before)
  return { acked: results.every(({ outcome }) => outcome === "acked"), cpu: (user + system) / 1000 }
})

process.stdout.write(JSON.stringify(await Effect.runPromise(Effect.scoped(idle))))
