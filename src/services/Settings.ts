/**
 * The environment, read once at start and checked whole (O): `parse` is pure, collects every problem and prints no
 * secret. What it returns is valid, cross checks included.
 */
import { type Duration, type LogLevel, Option, type Redacted, Result } from "effect"
import * as DurationText from "../domain/DurationText.ts"
import type { Options } from "./ReaperOptions.ts"
import * as Checks from "./SettingsChecks.ts"
import { ConfigurationError, type Problem } from "./SettingsError.ts"
import * as Kafka from "./SettingsKafka.ts"
import { type Name, names, table, type Values } from "./SettingsTable.ts"
import * as Telemetry from "./SettingsTelemetry.ts"
import type { Variable } from "./SettingsVariable.ts"
import * as Warnings from "./SettingsWarnings.ts"

export type Environment = Readonly<Record<string, string | undefined>>

/** Names this process where the environment has no `HOSTNAME`. */
export interface Host {
  readonly hostname: string
  readonly pid: number
}

/** Where signed requests are posted. */
interface SignedEndpoint {
  readonly url: string
  readonly secret: Redacted.Redacted<string>
}

export interface Settings {
  readonly reaper: Options
  readonly database: {
    readonly url: Option.Option<Redacted.Redacted<string>>
    readonly poolSize: number
    readonly preparedStatements: boolean
    readonly listenUrl: Option.Option<Redacted.Redacted<string>>
  }
  readonly http: { readonly host: string; readonly port: number }
  readonly recorder: Option.Option<SignedEndpoint>
  readonly callsEnabled: boolean
  readonly hub: Option.Option<SignedEndpoint>
  readonly kafka: Option.Option<Kafka.KafkaSettings>
  readonly outbox: {
    readonly maxAttempts: number
    readonly keyPolicy: Values["OUTBOX_KEY_POLICY"]
    readonly retention: Duration.Duration
  }
  readonly realtimeMaxAge: Duration.Duration
  readonly log: {
    readonly level: LogLevel.LogLevel
    readonly format: Option.Option<"json" | "pretty">
  }
  /** What does not go out over OTLP, and why; empty where all does. */
  readonly telemetryOff: ReadonlyArray<string>
  /** Likely slips that are no reason to refuse. */
  readonly warnings: ReadonlyArray<string>
  readonly described: ReadonlyArray<Described>
}

type Described = readonly [name: Name, value: string, isDefault: boolean]

const variable = (name: Name): Variable<unknown> => table[name]

// An empty variable counts as absent: compose files and charts write `NAME=` for "not set".
const written = (env: Environment, name: Name): string | undefined => env[name] || undefined

interface Reading {
  readonly values: Partial<Values>
  readonly problems: ReadonlyArray<Problem>
}

const toProblem = (env: Environment, name: Name, problem: string, allowed: string): Problem => {
  const text = written(env, name)
  const value = text === undefined ? undefined : variable(name).quote(text)
  return { name, problem, allowed, ...(value === undefined ? {} : { value }) }
}

const readAll = (env: Environment): Reading => {
  const values: Partial<Record<Name, unknown>> = {}
  const problems: Array<Problem> = []
  for (const name of names) {
    const { read, fallback, allowed } = variable(name)
    const text = written(env, name)
    const value = text === undefined ? Result.succeed(fallback) : read(text)
    if (Result.isSuccess(value)) values[name] = value.success
    else problems.push(toProblem(env, name, value.failure, allowed))
  }
  // Each value comes from the reader of its own name, which is what Values says.
  return { values: values as Partial<Values>, problems }
}

const reaper = (values: Values, instance: string): Options => ({
  pollingInterval: values.REAPER_POLLING_INTERVAL,
  emptyRoomGrace: values.REAPER_EMPTY_ROOM_GRACE,
  provisionTimeout: values.REAPER_PROVISION_TIMEOUT,
  staleLiveTimeout: values.REAPER_STALE_LIVE_TIMEOUT,
  batchSize: values.REAPER_BATCH_SIZE,
  lockTtl: values.REAPER_LOCK_TTL,
  maxRunDuration: values.REAPER_MAX_RUN_DURATION,
  maxClockSkew: values.REAPER_MAX_CLOCK_SKEW,
  provisionFailedSignal: values.REAPER_PROVISION_FAILED_SIGNAL,
  closingsRetention: values.CLOSINGS_RETENTION,
  instance
})

const describeAll = (env: Environment): ReadonlyArray<Described> =>
  names.map((name) => {
    const text = written(env, name)
    return [
      name,
      text === undefined ? variable(name).byDefault.replaceAll("`", "") : variable(name).show(text),
      text === undefined
    ]
  })

const build = (env: Environment, values: Values, host: Host): Settings => ({
  reaper: reaper(values, `${env.HOSTNAME || host.hostname}-${host.pid}`),
  database: {
    url: values.DATABASE_URL,
    poolSize: values.DATABASE_POOL_SIZE,
    preparedStatements: values.DATABASE_PREPARED_STATEMENTS,
    listenUrl: values.DATABASE_LISTEN_URL
  },
  http: { host: values.HTTP_HOST, port: values.HTTP_PORT },
  recorder: Option.all({ url: values.RECORDER_URL, secret: values.RECORDER_SECRET }),
  callsEnabled: values.CONFERENCE_CALLS_ENABLED,
  hub: Option.all({ url: values.REALTIME_HUB_URL, secret: values.REALTIME_HUB_SECRET }),
  kafka: Kafka.fromValues(values),
  outbox: {
    maxAttempts: values.OUTBOX_MAX_ATTEMPTS,
    keyPolicy: values.OUTBOX_KEY_POLICY,
    retention: values.OUTBOX_RETENTION
  },
  realtimeMaxAge: values.REALTIME_MAX_AGE,
  log: { level: values.LOG_LEVEL, format: values.LOG_FORMAT },
  telemetryOff: Telemetry.off(env),
  warnings: Warnings.warnings(env),
  described: describeAll(env)
})

/** Reads every variable; fails with all that is wrong at once. */
export const parse = (env: Environment, host: Host): Result.Result<Settings, ConfigurationError> => {
  const { values, problems } = readAll(env)
  const crossed = Checks.findings({
    values,
    isSet: (name) => written(env, name) !== undefined,
    isProduction: env.NODE_ENV === "production"
  }).map(({ name, problem, allowed }) => toProblem(env, name, problem, allowed))
  const all = [...problems, ...crossed]
  return all.length > 0
    ? Result.fail(new ConfigurationError({ problems: all }))
    : Result.succeed(build(env, values as Values, host))
}

/** For the start log: every variable in the table's order, without secrets. */
export const describe = (settings: Settings): ReadonlyArray<Described> => settings.described

const cell = (text: string): string => text.replaceAll("|", "\\|")

/** The options table of the README, in Markdown; the forms of a duration stand above it. */
export const optionsTable = (): string =>
  [
    "| name | meaning | default | allowed |",
    "| --- | --- | --- | --- |",
    ...names.map((name) => {
      const { meaning, byDefault, allowed } = variable(name)
      return `| \`${name}\` | ${cell(meaning)} | ${cell(byDefault)} | ${cell(allowed.replace(` in whole milliseconds: ${DurationText.forms}`, ""))} |`
    })
  ].join("\n")
