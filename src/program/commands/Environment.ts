/** What every command begins with: settings, logging, and the database that the settings name. */
import { hostname } from "node:os"
import { resolve } from "node:path"
import { Console, Effect, Layer, Option, Redacted, type Scope } from "effect"
import type * as Database from "../../layers/Database.ts"
import * as EmbeddedPostgres from "../../layers/EmbeddedPostgres.ts"
import * as Logging from "../../layers/Logging.ts"
import * as Telemetry from "../../layers/Telemetry.ts"
import * as Settings from "../../services/Settings.ts"

/** Where the embedded server keeps its data, relative to the working directory. */
const dataFolder = ".data"

export const settings = Effect.suspend(() =>
  Effect.fromResult(Settings.parse(process.env, { hostname: hostname(), pid: process.pid }))
)

export const logging = (settings: Settings.Settings) =>
  Telemetry.layer(process.env).pipe(Layer.provideMerge(Logging.layer(settings.log, process.stderr.isTTY === true)))

export interface Target {
  readonly config: Database.DatabaseConfig
  /** In plain words, without credentials. */
  readonly description: string
  readonly embedded: boolean
}

const describeUrl = (url: URL): string => `${url.host}${url.pathname}`

/** `own`: this process is the worker of the embedded server; `attach`: it uses the one that runs, or starts its own. */
export const target = (
  settings: Settings.Settings,
  use: "own" | "attach"
): Effect.Effect<Target, EmbeddedPostgres.EmbeddedPostgresError, Scope.Scope> =>
  Effect.gen(function* () {
    const { url, poolSize, preparedStatements } = settings.database
    if (Option.isSome(url)) {
      const description = `PostgreSQL at ${describeUrl(new URL(Redacted.value(url.value)))}`
      return { config: { url: url.value, poolSize, preparedStatements }, description, embedded: false }
    }
    const server = yield* use === "own" ? EmbeddedPostgres.own(dataFolder) : EmbeddedPostgres.attach(dataFolder)
    return {
      config: { url: server.url, poolSize, preparedStatements },
      description: `embedded PostgreSQL on 127.0.0.1:${server.port}, data in ${server.dataDirectory}${
        server.relocated ? ` (the server's account cannot enter ${resolve(dataFolder)})` : ""
      }`,
      embedded: true
    }
  })

/** The result of a command goes to standard output, everything else to standard error. */
export const print = (text: string) => Console.log(text)
