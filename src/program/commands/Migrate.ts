/** `migrate`: migrations only. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import * as Database from "../../layers/Database.ts"
import { migrate as runMigrations } from "../../layers/Migrations.ts"
import * as Environment from "./Environment.ts"

const handle = Effect.fnUntraced(function* () {
  const settings = yield* Environment.settings
  const applied = yield* Effect.gen(function* () {
    const target = yield* Environment.target(settings, "attach")
    yield* Effect.logInfo("migrating").pipe(Effect.annotateLogs({ database: target.description }))
    return yield* runMigrations.pipe(Effect.provide(Database.layer(target.config)))
  }).pipe(Effect.scoped, Effect.provide(Environment.logging(settings)))
  yield* Environment.print(
    applied.length === 0 ? "up to date, nothing to apply" : applied.map((name) => `applied ${name}`).join("\n")
  )
})

export const migrate = Command.make("migrate", {}, handle).pipe(
  Command.withDescription("Apply the migrations and end"),
  Command.withExamples([
    { command: "conference-room-reaper migrate", description: "Before a deployment that runs with --no-migrate" }
  ])
)
