/** A process that takes the embedded server, prints what it got as one line of JSON, and stays until it is stopped. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Redacted } from "effect"
import { serve } from "../../src/layers/EmbeddedPostgres.ts"

const [take, folder = ".data"] = process.argv.slice(2)

const print = (answer: object) => Effect.sync(() => process.stdout.write(`${JSON.stringify(answer)}\n`))

// No fsync: a database for every test is much to flush, and a killed process loses nothing that the kernel has.
const hold = serve(folder, { exclusive: take === "own", durable: false, database: "messenger" }).pipe(
  Effect.tap((server) => print({ ...server, url: Redacted.value(server.url) })),
  Effect.tapError(({ message }) => print({ message })),
  Effect.andThen(Effect.never),
  Effect.scoped
)

NodeRuntime.runMain(hold, { disableErrorReporting: true })
