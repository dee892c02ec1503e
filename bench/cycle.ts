/**
 * The time of one cycle on a large database (R8): `npm run bench`. Results go to standard output.
 *
 * BENCH_DATABASE_URL names a server where databases may be created; without it an embedded one is started and removed.
 * BENCH_TERMINAL, BENCH_HEALTHY and BENCH_ROUNDS change the sizes.
 */
import { openSync, writeSync } from "node:fs"
import { devNull } from "node:os"
import { Console, Effect, Option } from "effect"
import * as Logging from "../src/layers/Logging.ts"
import { batchSizes, type Sizes, silentRooms, terminalRows } from "./Sections.ts"
import * as Server from "./Server.ts"

const sizes: Sizes = {
  terminal: Number(process.env.BENCH_TERMINAL || 1_000_000),
  healthy: Number(process.env.BENCH_HEALTHY || 50_000),
  rounds: Number(process.env.BENCH_ROUNDS || 30)
}

// Logging is part of a cycle, so it stays on; only the lines go where they cost a write and are not seen.
const nowhere = openSync(devNull, "w")
process.stderr.write = (text: string | Uint8Array) => {
  writeSync(nowhere, String(text))
  return true
}

const section = (title: string, lines: ReadonlyArray<string>) =>
  Console.log([`\n${title}`, `${"milliseconds".padEnd(52)}      min   median      max`, ...lines].join("\n"))

const program = Effect.gen(function* () {
  const server = yield* Server.start
  const { url, lines } = yield* terminalRows(server, sizes)
  yield* section("Terminal rows", lines)
  yield* section("Batch size", yield* batchSizes(url, sizes))
  yield* section("Silent rooms", yield* silentRooms(server, sizes))
})

await Effect.runPromise(
  Effect.scoped(program).pipe(Effect.provide(Logging.layer({ level: "Info", format: Option.some("json") }, false)))
)
