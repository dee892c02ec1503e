/** What is measured, section by section, on databases that are loaded already. Each answers lines to print. */
import { Clock, Effect, type Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as Cycle from "../src/program/Cycle.ts"
import * as Figures from "./Figures.ts"
import * as Rows from "./Rows.ts"
import * as Server from "./Server.ts"

export interface Sizes {
  readonly terminal: number
  readonly healthy: number
  readonly rounds: number
}

// The first executions on a connection are planned anew and the JIT is cold; later ones are what a worker sees.
const warmUp = 8
// Longest that the options allow: batches of 10 000 are measured, not cut off.
const patient = { REAPER_MAX_RUN_DURATION: "110s" }

const query = (statement: string) => Effect.flatMap(SqlClient, (sql) => Effect.asVoid(sql.unsafe(statement)))

/** One cycle over so many due rooms in each phase, in milliseconds; dies unless it closed exactly those. */
const cycleOn = Effect.fnUntraced(function* (url: Redacted.Redacted, batchSize = 100) {
  const worker = yield* Server.worker(url, { ...patient, REAPER_BATCH_SIZE: `${batchSize}` })
  return (due: number) =>
    Effect.gen(function* () {
      yield* Server.on(url, Rows.insertDueRooms(due))
      const start = yield* Clock.monotonicTimeNanos
      const summary = yield* Effect.provide(Cycle.run, worker)
      const elapsed = Number((yield* Clock.monotonicTimeNanos) - start) / 1e6
      const { emptyTimeoutCount, provisionFailedCount, staleTimeoutCount } = summary
      const closed = [emptyTimeoutCount, provisionFailedCount, staleTimeoutCount]
      if (closed.some((count) => count !== due))
        return yield* Effect.die(new Error(`closed ${closed}, not ${due} each`))
      return elapsed
    })
})

const warm = (cycle: (due: number) => Effect.Effect<number, unknown>, due = 100) =>
  Effect.orDie(Effect.repeat(cycle(due), { times: warmUp }))

const loaded = Effect.fnUntraced(function* (
  server: Server.BenchServer,
  label: string,
  terminal: number,
  healthy: number
) {
  const database = yield* Server.database(server, label)
  if (terminal > 0) yield* Server.on(database.url, Rows.loadTerminal(terminal))
  yield* Server.on(database.url, Rows.loadHealthy(healthy))
  yield* Server.on(database.url, Rows.settle)
  return database.url
})

/** R8: the cost of a cycle must not grow with the number of terminal rows. */
export const terminalRows = Effect.fnUntraced(function* (server: Server.BenchServer, sizes: Sizes) {
  const none = yield* cycleOn(yield* loaded(server, "none", 0, sizes.healthy))
  const some = yield* cycleOn(yield* loaded(server, "some", sizes.terminal / 100, sizes.healthy))
  const url = yield* loaded(server, "all", sizes.terminal, sizes.healthy)
  const all = yield* cycleOn(url)
  yield* Effect.forEach([none, some, all], (cycle) => warm(cycle), { discard: true })
  const figures = yield* Figures.rounds(sizes.rounds, {
    "100 due, no terminal rows": none(100),
    [`100 due, ${sizes.terminal / 100} terminal rows`]: some(100),
    [`100 due, ${sizes.terminal} terminal rows`]: all(100),
    [`nothing due, ${sizes.terminal} terminal rows`]: all(0)
  })
  const [a, b, c, d] = figures
  const ratios = a && b && c && d ? [Figures.ratio(b, a), Figures.ratio(c, a), Figures.ratio(c, d)] : []
  return { url, lines: [...figures.map((each) => Figures.line(each)), ...ratios] }
})

/** How the cost of one room changes with the batch. */
export const batchSizes = Effect.fnUntraced(function* (url: Redacted.Redacted, sizes: Sizes) {
  const lines: Array<string> = []
  for (const [size, rounds] of [
    [100, sizes.rounds],
    [1000, Math.ceil(sizes.rounds / 5)],
    [10_000, Math.ceil(sizes.rounds / 15)]
  ] as const) {
    const cycle = yield* cycleOn(url, size)
    yield* warm(cycle)
    const [figures] = yield* Figures.rounds(rounds, { [`batch of ${size}, ms a room`]: cycle(size) })
    yield* Server.on(url, Rows.settle)
    if (figures) lines.push(Figures.line(figures, size * 3))
  }
  return lines
})

const dropEmptyIndex = "drop index messenger.ix_conf_empty"

const heartbeat = Figures.timed(
  query(`update messenger.conference_sessions
    set last_activity_at = last_activity_at + interval '1 millisecond' where status = 'Active'`)
)

/** The worst case of R1: nobody has left, but every healthy room is older than the grace, so the claim passes them all. */
export const silentRooms = Effect.fnUntraced(function* (server: Server.BenchServer, sizes: Sizes) {
  const variants = {
    "rooms in use, without ix_conf_empty": [query(dropEmptyIndex)],
    "rooms silent, without ix_conf_empty": [Rows.silence, query(dropEmptyIndex)],
    "rooms silent": [Rows.silence]
  }
  const due: Record<string, Effect.Effect<number>> = {}
  const none: Record<string, Effect.Effect<number>> = {}
  const beats: Record<string, Effect.Effect<number>> = {}
  for (const [label, changes] of Object.entries(variants)) {
    const url = yield* loaded(server, label.replaceAll(/\W/g, "_"), sizes.terminal / 100, sizes.healthy)
    yield* Effect.forEach([...changes, Rows.settle], (change) => Server.on(url, change), { discard: true })
    const cycle = yield* cycleOn(url)
    yield* warm(cycle)
    due[`100 due, ${label}`] = Effect.orDie(cycle(100))
    none[`nothing due, ${label}`] = Effect.orDie(cycle(0))
    beats[`heartbeat of all rooms, ${label}`] = Effect.orDie(Server.on(url, heartbeat))
  }
  const figures = [
    yield* Figures.rounds(sizes.rounds, due),
    yield* Figures.rounds(sizes.rounds, none),
    yield* Figures.rounds(5, beats)
  ]
  const ratios = figures.flatMap(([used, silent, indexed]) =>
    used && silent && indexed ? [Figures.ratio(silent, used), Figures.ratio(indexed, silent)] : []
  )
  return [...figures.flat().map((each) => Figures.line(each)), ...ratios]
})
