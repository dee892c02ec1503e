/** The command line as the process's main fiber, and its exit codes. */
import { NodeRuntime } from "@effect/platform-node"
import { Cause, Console, Effect, Exit, Ref } from "effect"
import { main } from "./Cli.ts"
import { DespiteSignal } from "./ExitCode.ts"

// What nobody has foreseen, with its whole cause. The runtime's own report would go to standard output.
const report = (cause: Cause.Cause<unknown>) =>
  Cause.hasInterruptsOnly(cause) ? Effect.void : Console.error(`conference-room-reaper: ${Cause.pretty(cause)}`)

// To the parser "-5s" are two flags. Joined to the flag before it, it is that flag's value, and refused as such.
const negativeJoined = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const isValueOf = (flag = "", value = "") => /^--[^=]+$/.test(flag) && /^-\d/.test(value)
  return args.flatMap((arg, i) => {
    if (isValueOf(args[i - 1], arg)) return []
    return [isValueOf(arg, args[i + 1]) ? `${arg}=${args[i + 1]}` : arg]
  })
}

/**
 * `stopped` is the exit code after a signal, where the command has decided on none; `isOutputLost` whether standard
 * output took all of the result. From here on SIGTERM and SIGINT interrupt the main fiber.
 */
export const runProgram = (args: ReadonlyArray<string>, stopped: number, isOutputLost: () => boolean): void => {
  const despiteSignal = Ref.makeUnsafe<number | undefined>(undefined)
  const exitCode = (exit: Exit.Exit<number, unknown>): number => {
    if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) return 1
    const decided = Exit.isSuccess(exit) ? exit.value : Ref.getUnsafe(despiteSignal)
    return decided === 0 && isOutputLost() ? 1 : (decided ?? stopped)
  }
  NodeRuntime.runMain(
    main(negativeJoined(args)).pipe(Effect.tapCause(report), Effect.provideService(DespiteSignal, despiteSignal)),
    {
      disableErrorReporting: true,
      // All work has ended here; a socket that an exporter left behind must not keep the process alive. A turn later, since
      // standard output tells only then that it took nothing.
      teardown: (exit) => setImmediate(() => process.exit(exitCode(exit as Exit.Exit<number, unknown>)))
    }
  )
}
