/**
 * The plans of the statements that a cycle really sends, under the conditions that mislead a planner (R8). Writes them to
 * docs/plans/ and prints a summary: `node bench/plans.ts`. Always on an embedded server, whose log it reads.
 */
import { readFileSync, statSync, writeFileSync } from "node:fs"
import { Console, Effect, Layer, Logger, Option, type Redacted, References } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as Cycle from "../src/program/Cycle.ts"
import * as Explained from "./Explained.ts"
import * as Rows from "./Rows.ts"
import * as Server from "./Server.ts"

const terminal = Number(process.env.BENCH_TERMINAL || 1_000_000)
const healthy = Number(process.env.BENCH_HEALTHY || 50_000)
const folder = new URL("../docs/plans/", import.meta.url)

const query = (statement: string) => Effect.flatMap(SqlClient, (sql) => Effect.asVoid(sql.unsafe(statement)))

interface Target {
  readonly server: Server.BenchServer
  readonly log: string
  readonly database: { readonly name: string; readonly url: Redacted.Redacted }
}

const set = ({ server, database }: Target, settings: Readonly<Record<string, string>>) =>
  Effect.forEach(
    Object.entries(settings),
    ([name, value]) => Server.on(server.url, query(`alter database ${database.name} set ${name} = '${value}'`)),
    { discard: true }
  )

// A third of the empty rooms cannot be closed: they have no start. So the claims of poison have something to find.
const poison = query(`update messenger.conference_sessions set started_at = null
  where status = 'Active' and active_participant_count = 0 and id < '55555555-5555-5555-5555-555555555555'`)

const summary = (plans: ReadonlyArray<Explained.Explained>): string =>
  plans
    .map(({ name, pages, access }) => `${name.padEnd(34)}${String(pages).padStart(8)} pages  ${access.join("; ")}`)
    .join("\n")

// Prepared statements may turn generic after five executions, so the plans are those of a later cycle.
const cycles = 8

const lastCycle = ({ database, log }: Target) =>
  Effect.gen(function* () {
    const worker = yield* Server.worker(database.url)
    let from = 0
    for (let i = 0; i < cycles; i++) {
      // Less than a batch: only then poison is looked for.
      yield* Server.on(database.url, Rows.insertDueRooms(90))
      if (i === cycles - 2) yield* Server.on(database.url, poison)
      from = statSync(log).size
      yield* Effect.provide(Cycle.run, worker)
    }
    return Explained.parse(readFileSync(log).subarray(from).toString("utf8"))
  }).pipe(Effect.scoped)

const isAboutSessions = ({ name }: Explained.Explained) => /^(claim|guarded update|skip count|backlog|prune)/.test(name)

// Topping up a batch behind poison repeats its claims.
const firstOfEach = (plans: ReadonlyArray<Explained.Explained>) =>
  plans.filter(({ name }, index) => plans.findIndex((other) => other.name === name) === index)

const keep = Effect.fnUntraced(function* (target: Target, file: string, title: string) {
  const plans = firstOfEach(yield* lastCycle(target)).filter(isAboutSessions)
  const full = plans.map(({ name, milliseconds, plan }) => `## ${name} (${milliseconds} ms)\n${plan}`).join("\n\n")
  writeFileSync(new URL(`${file}.txt`, folder), `# ${title}\n\n${summary(plans)}\n\n${full}\n`)
  yield* Console.log(`\n${title}\n${summary(plans)}`)
})

const load = Effect.fnUntraced(function* (
  server: Server.BenchServer,
  label: string,
  first: Effect.Effect<void, unknown, SqlClient>
) {
  const database = yield* Server.database(server, label)
  yield* Server.on(database.url, first)
  yield* Server.on(database.url, Rows.loadTerminal(terminal))
  yield* Server.on(database.url, Rows.loadHealthy(healthy))
  const target: Target = { server, database, log: Option.getOrThrow(server.log) }
  yield* set(target, Explained.settings)
  return target
})

/** Somebody's forgotten snapshot: for 24 cycles, twelve minutes of a worker, no dead row can go. */
const underOldSnapshot = (target: Target) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    yield* sql`set transaction isolation level repeatable read`
    yield* sql`select count(*) from messenger.conference_reaper_runs`
    for (let i = 0; i < 20; i++) {
      yield* Server.on(
        target.database.url,
        query(`update messenger.conference_sessions set last_activity_at = last_activity_at + interval '1 second'
          where id in (select id from messenger.conference_sessions where status = 'Active'
            and active_participant_count > 0 and last_activity_at > now() limit 2000)`)
      )
      if (i % 8 === 7) yield* lastCycle(target)
    }
    yield* keep(
      target,
      "old-snapshot",
      "A REPEATABLE READ transaction has been open for 24 cycles and 40000 heartbeats"
    )
  })

const program = Effect.gen(function* () {
  const server = yield* Server.start
  const analysed = yield* load(server, "analysed", Effect.void)
  yield* Server.on(analysed.database.url, Rows.settle)
  yield* keep(analysed, "analysed", "Analysed, plans as the server chooses them")
  yield* set(analysed, { plan_cache_mode: "force_generic_plan" })
  yield* keep(analysed, "generic", "Analysed, prepared statements with generic plans")
  yield* set(analysed, { plan_cache_mode: "auto" })
  yield* Server.on(
    analysed.database.url,
    Effect.flatMap(SqlClient, (sql) => sql.withTransaction(underOldSnapshot(analysed)))
  )

  const table = query("alter table messenger.conference_sessions set (autovacuum_enabled = false)")
  const fresh = yield* load(server, "fresh", table)
  yield* keep(fresh, "never-analysed", "Freshly loaded, never analysed")
  yield* set(fresh, { plan_cache_mode: "force_generic_plan", enable_hashjoin: "off", enable_mergejoin: "off" })
  yield* keep(fresh, "never-analysed-nested", "Never analysed, generic plans, neither hash nor merge joins")
})

const quiet = Layer.mergeAll(Logger.layer([]), Layer.succeed(References.MinimumLogLevel, "None"))
await Effect.runPromise(Effect.scoped(program).pipe(Effect.provide(quiet)))
