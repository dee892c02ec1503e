/**
 * The command line (interface: Commands). Help that was asked for goes to standard output; wrong usage, or no command,
 * prints help on standard error and ends with 2. A user's mistake is one clear message, never a stack trace.
 */
import { NodeServices } from "@effect/platform-node"
import { Console, Effect, Layer, Ref } from "effect"
import { CliConfig, CliError, CliOutput, Command, GlobalFlag } from "effect/cli"
import { ExitCode } from "./ExitCode.ts"
import { migrate } from "./Migrate.ts"
import { once } from "./Once.ts"
import { run as runWorker } from "./Run.ts"
import { simulate } from "./Simulate.ts"
import { topic } from "./Topic.ts"
import { version } from "./Version.ts"

const wrongUsage = 2

const root = Command.make("conference-room-reaper").pipe(
  Command.withDescription(
    "Closes conference sessions that were left hanging. Configured by environment variables; see the README."
  ),
  Command.withSubcommands([runWorker, once, migrate, topic, simulate])
)

const presenter = CliOutput.layerPresenter({
  present: (event) => {
    if (event._tag === "Version" || (event._tag === "Help" && event.reason === "Requested")) {
      return CliOutput.defaultPresenter.present(event)
    }
    const formatter = CliOutput.defaultFormatter({ colors: process.stderr.isTTY === true })
    const errors = event._tag === "InvalidInvocation" ? [formatter.formatErrors(event.errors)] : []
    return Console.error([formatter.formatHelpDoc(event.helpDoc), ...errors].join("\n"))
  }
})

const layers = Layer.mergeAll(
  NodeServices.layer,
  presenter,
  // LOG_LEVEL is the one way to set the level.
  CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] })
)

// Errors that say all a user needs in their message.
const known = (message: string, code: number) => Effect.as(Console.error(`conference-room-reaper: ${message}`), code)

/** Runs the command line and returns the exit code; defects and unexpected failures are left to the caller. */
export const main = (args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const exitCode = yield* Ref.make(0)
    yield* Command.runWith(root, { version })(args).pipe(Effect.provideService(ExitCode, exitCode))
    return yield* Ref.get(exitCode)
  }).pipe(
    Effect.catchTags({
      ConfigurationError: (error) => known(error.message, 2),
      EmbeddedPostgresError: (error) => known(error.message, 1),
      HttpServerUnavailable: (error) => known(error.message, 1),
      StoreUnavailable: (error) => known(error.message, 1),
      TopicNotCreated: (error) => known(error.message, 1),
      TimingRefused: (error) => known(error.message, 2)
    }),
    Effect.catchIf(CliError.isCliError, () => Effect.succeed(wrongUsage)),
    Effect.provide(layers)
  )
