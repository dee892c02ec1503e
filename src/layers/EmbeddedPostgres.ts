/**
 * The PostgreSQL server that the process brings along when DATABASE_URL is not set. `own` is for the worker: one at a time
 * on a data folder. `attach` is for every other command: it uses the server that runs there, else starts one.
 *
 * The last user out stops the server, whoever started it. So a worker that starts while a command is at work takes over
 * the server that this command has started, and a command that outlives the worker keeps its database. What a killed
 * process leaves running is taken over by the next one.
 */
import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { Effect, Exit, Redacted, Schedule, Scope } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import { EmbeddedPostgresError, fileWork, otherServer } from "./EmbeddedPostgresCommand.ts"
import { lock, tryLock } from "./EmbeddedPostgresLock.ts"
import { clusterOf, locate, type Place } from "./EmbeddedPostgresPlace.ts"
import {
  hasCluster,
  initialise,
  NotYet,
  password,
  runningPort,
  start,
  stop,
  superuser
} from "./EmbeddedPostgresServer.ts"
import { storeUnavailable } from "./PgError.ts"

export { EmbeddedPostgresError }

export interface Server {
  readonly url: Redacted.Redacted
  readonly port: number
  readonly dataDirectory: string
  /** The data folder is closed to the server's account, so the database lies elsewhere: at `dataDirectory`. */
  readonly relocated: boolean
  /** It was running already. */
  readonly takenOver: boolean
}

export interface Use {
  /** Take the data folder for this process alone, among those that do the same. */
  readonly exclusive: boolean
  /** False only for throw-away data: no fsync. */
  readonly durable: boolean
  readonly database: string
}

const lockFile = (place: Place, name: "run" | "users" | "server") => join(place.folder, `${name}.lock`)

const claim = Effect.fnUntraced(function* (place: Place) {
  const pidFile = join(place.folder, "run.pid")
  if (yield* tryLock(lockFile(place, "run"), "exclusive")) {
    return yield* fileWork(`write ${pidFile}`, () => writeFile(pidFile, `${process.pid}\n`))
  }
  const pid = yield* fileWork(`read ${pidFile}`, () => readFile(pidFile, "utf8")).pipe(
    Effect.orElseSucceed(() => "unknown")
  )
  return yield* new EmbeddedPostgresError({
    message: `${place.dataFolder} is in use by another worker, process ${pid.trim()}: stop that first, ${otherServer}`
  })
})

const leave = (place: Place, using: Scope.Closeable) =>
  Effect.gen(function* () {
    yield* lock(lockFile(place, "server"), "exclusive").pipe(Effect.ensuring(Scope.close(using, Exit.void)))
    if (yield* tryLock(lockFile(place, "users"), "exclusive")) yield* stop(place)
  }).pipe(
    Effect.scoped,
    Effect.catch((error) => Effect.logWarning(`the embedded PostgreSQL may be left running: ${error.message}`))
  )

/** For the rest of the scope this process counts as a user of the server. */
const enter = (place: Place) =>
  Effect.acquireRelease(
    Effect.tap(Scope.make(), (using) => Scope.provide(lock(lockFile(place, "users"), "shared"), using)),
    (using) => leave(place, using)
  )

// Also proves that the server answers, and that it is ours: nobody else knows the password.
const ensureDatabase = Effect.fnUntraced(
  function* (url: (database: string) => Redacted.Redacted, database: string) {
    const sql = yield* PgClient.makeClient({ url: url(superuser), applicationName: "conference-room-reaper start" })
    const found = yield* sql`select 1 from pg_database where datname = ${database}`
    if (found.length === 0) yield* sql`create database ${sql(database)}`
  },
  Effect.scoped,
  Effect.provide(Reactivity.layer),
  Effect.mapError((error) => {
    const { isRetryable, reason } = storeUnavailable("connect")(error)
    return isRetryable
      ? new NotYet({ message: reason })
      : new EmbeddedPostgresError({ message: `the embedded PostgreSQL refuses us: ${reason}` })
  })
)

const ensureServer = Effect.fnUntraced(function* (place: Place, use: Use, alone: boolean) {
  let port = yield* runningPort(place)
  const takenOver = port !== undefined
  if (port === undefined) {
    if (!alone) {
      return yield* new EmbeddedPostgresError({
        message: `another process uses ${place.dataFolder}, but its PostgreSQL server is gone: stop that process first, ${otherServer}`
      })
    }
    port = yield* start(place, use.durable)
  }
  const secret = yield* password(place)
  const url = (database: string) => Redacted.make(`postgres://${superuser}:${secret}@127.0.0.1:${port}/${database}`)
  yield* ensureDatabase(url, use.database)
  return { url: url(use.database), port, takenOver, dataDirectory: clusterOf(place.folder), relocated: place.relocated }
})

const patience = Schedule.spaced("200 millis").pipe(Schedule.upTo({ duration: "1 minute" }))

const withServerLock = Effect.fnUntraced(function* (place: Place, use: Use, whole: Scope.Scope) {
  yield* lock(lockFile(place, "server"), "exclusive")
  const alone = yield* Effect.scoped(tryLock(lockFile(place, "users"), "exclusive"))
  yield* Scope.provide(enter(place), whole)
  if (alone && !(yield* hasCluster(place))) {
    yield* stop(place)
    yield* initialise(place, use.durable)
  }
  return yield* ensureServer(place, use, alone).pipe(
    Effect.retry({ while: (error) => error._tag === "NotYet", schedule: patience }),
    Effect.catchTag("NotYet", ({ message }) =>
      Effect.fail(
        new EmbeddedPostgresError({
          message: `the embedded PostgreSQL in ${place.folder} is not ready after a minute: ${message}; look at its log there, ${otherServer}`
        })
      )
    )
  )
}, Effect.scoped)

/** The server of a data folder for the rest of the scope. */
export const serve = Effect.fnUntraced(function* (dataFolder: string, use: Use) {
  const place = yield* locate(dataFolder)
  if (use.exclusive) yield* claim(place)
  return yield* withServerLock(place, use, yield* Effect.scope)
})

/** For the worker: refuses a second one on the same data folder. */
export const own = (dataFolder: string): Effect.Effect<Server, EmbeddedPostgresError, Scope.Scope> =>
  serve(dataFolder, { exclusive: true, durable: true, database: "messenger" })

/** For every other command. */
export const attach = (dataFolder: string): Effect.Effect<Server, EmbeddedPostgresError, Scope.Scope> =>
  serve(dataFolder, { exclusive: false, durable: true, database: "messenger" })
