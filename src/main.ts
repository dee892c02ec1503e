/** Entry point: the command line as the process's main fiber, and its exit codes. */
import { NodeRuntime } from "@effect/platform-node"
import { Cause, Console, Effect, Exit } from "effect"
import { main } from "./program/commands/Cli.ts"

// A reader that goes away (`| head`, a closed terminal) must not end the worker.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {})

const args = process.argv.slice(2)

const exitCode = (exit: Exit.Exit<number, unknown>): number => {
  if (Exit.isSuccess(exit)) return exit.value
  // L5: a stop by SIGTERM or SIGINT is how a worker ends well; any other command was cut short.
  return Cause.hasInterruptsOnly(exit.cause) ? (args[0] === "run" ? 0 : 130) : 1
}

// What nobody has foreseen, with its whole cause. The runtime's own report would go to standard output.
const report = (cause: Cause.Cause<unknown>) =>
  Cause.hasInterruptsOnly(cause) ? Effect.void : Console.error(`conference-room-reaper: ${Cause.pretty(cause)}`)

NodeRuntime.runMain(Effect.tapCause(main(args), report), {
  disableErrorReporting: true,
  // All work has ended here; a socket that an exporter left behind must not keep the process alive.
  teardown: (exit) => process.exit(exitCode(exit as Exit.Exit<number, unknown>))
})
