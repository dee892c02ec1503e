/** `run`: the worker, the dispatchers and the HTTP endpoints, until SIGTERM or SIGINT. */
import { Effect, Layer, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { migrate } from "../../layers/Migrations.ts"
import * as Production from "../../layers/Production.ts"
import type { Settings } from "../../services/Settings.ts"
import * as HttpApi from "../HttpApi.ts"
import * as OutboxDispatcher from "../OutboxDispatcher.ts"
import * as RealtimeDispatcher from "../RealtimeDispatcher.ts"
import * as Reaper from "../Reaper.ts"
import * as StartUp from "../StartUp.ts"
import * as TopicCheck from "../TopicCheck.ts"
import * as Environment from "./Environment.ts"
import { logStart, type Work, works } from "./StartLog.ts"

const outbox = (settings: Settings) =>
  Option.match(settings.kafka, {
    onNone: () => OutboxDispatcher.runWithoutBroker,
    onSome: (kafka) =>
      Effect.all([TopicCheck.warn, OutboxDispatcher.run], { concurrency: "unbounded", discard: true }).pipe(
        Effect.provide(Production.publisher(kafka))
      )
  })

const realtime = (settings: Settings) =>
  Option.match(settings.hub, {
    onNone: () => RealtimeDispatcher.runWithoutHub,
    onSome: (hub) => Effect.provide(RealtimeDispatcher.run, Production.hub(hub))
  })

/** None of the loops ends by itself, and none waits for another: a broker that is away slows no cycle. */
const turn = (settings: Settings, does: ReadonlyArray<Work>) => {
  const only = <A, E, R>(work: Work, loop: Effect.Effect<A, E, R>): Effect.Effect<void, E, R> =>
    does.includes(work) ? Effect.asVoid(loop) : Effect.void
  return Effect.all(
    [only("reaper", Reaper.run), only("outbox", outbox(settings)), only("realtime", realtime(settings))],
    { concurrency: "unbounded", discard: true }
  )
}

const work = Effect.fnUntraced(function* (
  settings: Settings,
  target: Environment.Target,
  migrates: boolean,
  does: ReadonlyArray<Work>
) {
  yield* logStart(settings, target.description, does)
  yield* StartUp.databaseAnswers
  if (migrates) {
    const applied = yield* StartUp.whenDatabaseAnswers(migrate)
    yield* Effect.logInfo(
      applied.length === 0 ? "the schema is up to date" : `the schema was migrated: ${applied.join(", ")}`
    )
  }
  yield* turn(settings, does)
})

const rolesOf = ({ kafka, hub }: Settings, does: ReadonlyArray<Work>) => ({
  reaps: does.includes("reaper"),
  delivers: (does.includes("outbox") && Option.isSome(kafka)) || (does.includes("realtime") && Option.isSome(hub))
})

interface Input {
  readonly noMigrate: boolean
  readonly only: Option.Option<Work>
}

const handle = Effect.fnUntraced(function* ({ noMigrate, only }: Input) {
  const settings = yield* Environment.settings
  const does = Option.match(only, { onNone: () => works, onSome: (one) => [one] })
  yield* Effect.gen(function* () {
    const target = yield* Environment.target(settings, "own")
    const layers = HttpApi.layer(settings.http).pipe(
      Layer.provideMerge(Production.delivery(settings, target.config, rolesOf(settings, does))),
      Layer.provideMerge(Production.layer(settings, target.config))
    )
    yield* work(settings, target, !noMigrate, does).pipe(Effect.provide(layers))
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
    ),
    only: Flag.Literals("only", works).pipe(
      Flag.withDescription("Do one thing alone: close rooms, publish events, or push to the hub"),
      Flag.optional
    )
  },
  handle
).pipe(
  Command.withDescription("Run the worker until SIGTERM or SIGINT (npm start)"),
  Command.withExamples([
    { command: "conference-room-reaper run", description: "On DATABASE_URL, or on an embedded PostgreSQL without it" },
    {
      command: "conference-room-reaper run --only reaper",
      description: "Where the messenger delivers the outbox rows by itself"
    }
  ])
)
