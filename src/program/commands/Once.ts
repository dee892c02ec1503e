/** `once`: one cycle, its result on standard output. Exit 0 completed or lock-busy, 1 otherwise. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import * as CycleSummary from "../../domain/CycleSummary.ts"
import { migrate } from "../../layers/Migrations.ts"
import * as Production from "../../layers/Production.ts"
import * as Cycle from "../Cycle.ts"
import * as Environment from "./Environment.ts"
import { exitWith } from "./ExitCode.ts"

const toText = (summary: CycleSummary.CycleSummary): string =>
  Object.entries({ ...CycleSummary.toJson(summary), ...(summary.error === null ? {} : { error: summary.error }) })
    .map(([name, value]) => `${name.padEnd(21)} ${value}`)
    .join("\n")

const handle = Effect.fnUntraced(function* ({ json }: { readonly json: boolean }) {
  const settings = yield* Environment.settings
  const summary = yield* Effect.gen(function* () {
    const target = yield* Environment.target(settings, "attach")
    return yield* Effect.gen(function* () {
      // The embedded database is ours alone; one that was named by its url is migrated by `migrate` or `run` only.
      if (target.embedded) yield* migrate
      return yield* Cycle.run
    }).pipe(Effect.provide(Production.layer(settings, target.config)))
  }).pipe(Effect.scoped, Effect.provide(Environment.logging(settings)))
  yield* Environment.print(json ? JSON.stringify(CycleSummary.toJson(summary)) : toText(summary))
  return yield* exitWith(summary.outcome === "completed" || summary.outcome === "lock-busy" ? 0 : 1)
})

export const once = Command.make(
  "once",
  {
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("Print the result as one line of JSON"),
      Flag.withDefault(false)
    )
  },
  handle
).pipe(
  Command.withDescription("Run one cycle and print its result"),
  Command.withExamples([{ command: "conference-room-reaper once --json", description: "One cycle, for scripts" }])
)
