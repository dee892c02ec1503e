/** `run`: the worker with its HTTP endpoints, until SIGTERM or SIGINT. */
import { Effect, Layer } from "effect"
import { Command, Flag } from "effect/cli"
import { migrate } from "../../layers/Migrations.ts"
import * as Production from "../../layers/Production.ts"
import type { Settings } from "../../services/Settings.ts"
import * as HttpApi from "../HttpApi.ts"
import * as Reaper from "../Reaper.ts"
import * as StartUp from "../StartUp.ts"
import * as Environment from "./Environment.ts"
import { logStart } from "./StartLog.ts"

const work = Effect.fnUntraced(function* (settings: Settings, target: Environment.Target, migrates: boolean) {
  yield* logStart(settings, target.description)
  yield* StartUp.databaseAnswers
  if (migrates) {
    const applied = yield* StartUp.whenDatabaseAnswers(migrate)
    yield* Effect.logInfo(
      applied.length === 0 ? "the schema is up to date" : `the schema was migrated: ${applied.join(", ")}`
    )
  }
  return yield* Reaper.run
})

const handle = Effect.fnUntraced(function* ({ noMigrate }: { readonly noMigrate: boolean }) {
  const settings = yield* Environment.settings
  yield* Effect.gen(function* () {
    const target = yield* Environment.target(settings, "own")
    const layers = HttpApi.layer(settings.http).pipe(Layer.provideMerge(Production.layer(settings, target.config)))
    return yield* work(settings, target, !noMigrate).pipe(Effect.provide(layers))
  }).pipe(
    Effect.scoped,
    Effect.onInterrupt(() => Effect.logInfo("stopped")),
    Effect.provide(Environment.logging(settings))
  )
})

export const run = Command.make(
  "run",
  {
    noMigrate: Flag.Boolean("no-migrate").pipe(
      Flag.withDescription("Leave the schema alone: for a role without DDL rights"),
      Flag.withDefault(false)
    )
  },
  handle
).pipe(
  Command.withDescription("Run the worker until SIGTERM or SIGINT (npm start)"),
  Command.withExamples([
    { command: "conference-room-reaper run", description: "On DATABASE_URL, or on an embedded PostgreSQL without it" }
  ])
)
