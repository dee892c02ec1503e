/** The command line as the process's main fiber, and its exit codes. */
import { NodeRuntime } from "@effect/platform-node"
import { Cause, Console, Effect, Exit } from "effect"
import { main } from "./Cli.ts"

// What nobody has foreseen, with its whole cause. The runtime's own report would go to standard output.
const report = (cause: Cause.Cause<unknown>) =>
  Cause.hasInterruptsOnly(cause) ? Effect.void : Console.error(`conference-room-reaper: ${Cause.pretty(cause)}`)

/**
 * `stopped` is the exit code after a signal, `isOutputLost` whether standard output took all of the result. From here on
 * SIGTERM and SIGINT interrupt the main fiber.
 */
export const runProgram = (args: ReadonlyArray<string>, stopped: number, isOutputLost: () => boolean): void => {
  const exitCode = (exit: Exit.Exit<number, unknown>): number => {
    if (Exit.isSuccess(exit)) return exit.value === 0 && isOutputLost() ? 1 : exit.value
    return Cause.hasInterruptsOnly(exit.cause) ? stopped : 1
  }
  NodeRuntime.runMain(Effect.tapCause(main(args), report), {
    disableErrorReporting: true,
    // All work has ended here; a socket that an exporter left behind must not keep the process alive. A turn later, since
    // standard output tells only then that it took nothing.
    teardown: (exit) => setImmediate(() => process.exit(exitCode(exit as Exit.Exit<number, unknown>)))
  })
}
