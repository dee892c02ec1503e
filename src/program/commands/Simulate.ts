/** `simulate`: a messenger's traffic on the worker's database, to watch the worker by and to test it against. */
import { Duration, Effect } from "effect"
import { CliError, Command, Flag } from "effect/cli"
import * as DurationText from "../../domain/DurationText.ts"
import * as Database from "../../layers/Database.ts"
import { migrate } from "../../layers/Migrations.ts"
import { storeUnavailable } from "../../layers/PgError.ts"
import { leaveBehind } from "../../simulator/LeftBehind.ts"
import * as Simulator from "../../simulator/Simulate.ts"
import * as Environment from "./Environment.ts"
import { ExitCode, exitWith } from "./ExitCode.ts"
import { report } from "./SimulateReport.ts"
import { secondSignal } from "./SimulateSignals.ts"

const duration = (name: string) =>
  Flag.String(name).pipe(
    Flag.mapEffect((text) =>
      Effect.fromResult(DurationText.parse(text)).pipe(
        Effect.mapError(
          (problem) =>
            new CliError.InvalidValue({
              option: name,
              value: text,
              expected: `${DurationText.forms}; it ${problem}`,
              kind: "flag"
            })
        )
      )
    )
  )

const positive = (name: string, fallback: number) =>
  Flag.Finite(name).pipe(
    Flag.filter(
      (value) => value > 0,
      () => "a number above 0"
    ),
    Flag.withDefault(fallback)
  )

const whole = (name: string, least: number, fallback: number) =>
  Flag.Int(name).pipe(
    Flag.filter(
      (value) => value >= least,
      () => `a whole number of ${least} or more`
    ),
    Flag.withDefault(fallback)
  )

const flags = {
  rate: positive("rate", 2).pipe(Flag.withDescription("Rooms that begin each second (default 2)")),
  timeScale: positive("time-scale", 60).pipe(
    Flag.withDescription("How many times faster people talk and heartbeats come; windows stay as they are (default 60)")
  ),
  duration: duration("duration").pipe(
    Flag.withDescription("How long rooms begin, for example 5m (default: until Ctrl-C)"),
    Flag.optional
  ),
  drain: Flag.Boolean("drain").pipe(
    Flag.withDescription(
      "Play the lives that have begun to their end, and give the worker the time to close them: a crashed room takes REAPER_STALE_LIVE_TIMEOUT"
    ),
    Flag.withDefault(false)
  ),
  seed: Flag.Int("seed").pipe(Flag.withDescription("Same seed, same lives (default 1)"), Flag.withDefault(1)),
  hanging: whole("hanging", 0, 9).pipe(
    Flag.withDescription("Rooms left hanging before the traffic begins, due at once (default 9)")
  ),
  maxLiveRooms: whole("max-live", 1, 500).pipe(
    Flag.withDescription("Lives under way at the same time at the most (default 500)")
  ),
  json: Flag.Boolean("json").pipe(Flag.withDescription("Print the summary as JSON"), Flag.withDefault(false))
}

// Of a messenger's client, before the time scale.
const heartbeatInterval = Duration.seconds(30)

const handle = Effect.fnUntraced(function* (input: Command.Command.Config.Infer<typeof flags>) {
  const settings = yield* Environment.settings
  const exitCode = yield* ExitCode
  const { pollingInterval, maxRunDuration, provisionFailedSignal, ...windows } = settings.reaper
  const allowance = Duration.sum(pollingInterval, maxRunDuration)
  yield* Effect.gen(function* () {
    const target = yield* Environment.target(settings, "attach")
    yield* Effect.logInfo(`traffic goes to ${target.description}`)
    yield* Effect.gen(function* () {
      if (target.embedded) yield* migrate
      yield* leaveBehind(windows, input.hanging)
      yield* Simulator.simulate({
        roomsPerSecond: input.rate,
        timing: { ...windows, heartbeatInterval },
        timeScale: input.timeScale,
        duration: input.duration,
        drain: input.drain,
        seed: input.seed,
        maxLiveRooms: input.maxLiveRooms,
        auditAllowance: allowance,
        provisionFailedSignal,
        onEnd: (summary) =>
          Environment.print(report(summary, input.json)).pipe(
            Effect.andThen(exitWith(summary.audit.breachCount === 0 ? 0 : 1)),
            Effect.provideService(ExitCode, exitCode)
          ),
        brokenOff: secondSignal
      })
    }).pipe(Effect.provide(Database.layer(target.config)))
  }).pipe(
    Effect.catchTag("SqlError", (error) => Effect.fail(storeUnavailable("simulate")(error))),
    Effect.scoped,
    Effect.provide(Environment.logging(settings))
  )
})

export const simulate = Command.make("simulate", flags, handle).pipe(
  Command.withDescription(
    "Make a messenger's traffic on the worker's database: rooms that are used, left, crashed, never admitted"
  ),
  Command.withExamples([
    { command: "conference-room-reaper simulate", description: "Beside `npm start`, until Ctrl-C" },
    {
      command: "conference-room-reaper simulate --rate 20 --duration 5m --drain --json",
      description: "Five minutes of load, then the audit; exit code 1 when it finds a breach"
    }
  ])
)
