/** A process that takes the embedded server, prints what it got as one line of JSON, and stays until it is stopped. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Redacted } from "effect"
import { attach, own } from "../../src/layers/EmbeddedPostgres.ts"

const [take, folder = ".data"] = process.argv.slice(2)

const print = (answer: object) => Effect.sync(() => process.stdout.write(`${JSON.stringify(answer)}\n`))

const hold = (take === "own" ? own : attach)(folder).pipe(
  Effect.tap((server) => print({ ...server, url: Redacted.value(server.url) })),
  Effect.tapError(({ message }) => print({ message })),
  Effect.andThen(Effect.never),
  Effect.scoped
)

NodeRuntime.runMain(hold, { disableErrorReporting: true })
