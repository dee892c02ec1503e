/**
 * The environment as one table: name, meaning, default, what is allowed. Reading, the start log and the README's options
 * table all derive from it, so that none of them can disagree with another.
 */
import { Duration } from "effect"
import { brokerList, host, httpUrl } from "./SettingsAddress.ts"
import { postgresUrl } from "./SettingsPostgresUrl.ts"
import {
  boolean,
  duration,
  oneOf,
  optional,
  secret,
  text,
  type Variable,
  wholeNumber,
  withDefault
} from "./SettingsVariable.ts"

// One timer waits at most 2^31 - 1 ms, and idle_in_transaction_session_timeout is an integer of milliseconds.
const timer = duration(Duration.hours(24), "24h")
const window = duration(Duration.days(3650), "10 years (3650d)")
const filePath = text("a path")

export const table = {
  DATABASE_URL: optional(
    "PostgreSQL 14 or newer; required with `NODE_ENV=production`",
    postgresUrl,
    "unset: an embedded PostgreSQL server under `.data/`"
  ),
  DATABASE_POOL_SIZE: withDefault("connections in the pool", "10", wholeNumber(1, 1000)),
  DATABASE_PREPARED_STATEMENTS: withDefault("`false` for PgBouncer in transaction mode", "true", boolean),
  DATABASE_LISTEN_URL: optional("a direct connection for LISTEN behind a pooler", postgresUrl, "`DATABASE_URL`"),
  REAPER_POLLING_INTERVAL: withDefault("distance of two ticks", "30s", timer),
  REAPER_EMPTY_ROOM_GRACE: withDefault("how long a room may stand empty", "90s", window),
  REAPER_PROVISION_TIMEOUT: withDefault("how long a room may take to come up", "2m", window),
  REAPER_STALE_LIVE_TIMEOUT: withDefault("how long a live room may show no activity", "4h", window),
  REAPER_BATCH_SIZE: withDefault("sessions closed per phase and cycle", "100", wholeNumber(1, 10_000)),
  REAPER_LOCK_TTL: withDefault("after this a frozen holder has lost the run lock", "2m", timer),
  REAPER_MAX_RUN_DURATION: withDefault("longest time of one cycle; shorter than `REAPER_LOCK_TTL`", "30s", timer),
  REAPER_MAX_CLOCK_SKEW: withDefault(
    "largest difference to the database's clock",
    "5s",
    duration(Duration.hours(24), "24h", "off")
  ),
  REAPER_PROVISION_FAILED_SIGNAL: withDefault("realtime row for a failed provision", "true", boolean),
  CONFERENCE_CALLS_ENABLED: withDefault("`false`: no signal goes to the media stack", "true", boolean),
  HTTP_HOST: withDefault("address of health and metrics", "0.0.0.0", host),
  HTTP_PORT: withDefault("port of health and metrics; 0 takes any free one", "9464", wholeNumber(0, 65_535)),
  KAFKA_BROKERS: optional("where events are published", brokerList, "unset: rows wait in the outbox"),
  KAFKA_CLIENT: withDefault("the client library", "kafkajs", oneOf("kafkajs", "platformatic")),
  KAFKA_SSL: optional("TLS to the brokers", boolean, "on when a `KAFKA_SSL_*` file is set, else off"),
  KAFKA_SSL_CA: optional("file of the authority's certificate", filePath),
  KAFKA_SSL_CERT: optional("file of the client's certificate", filePath),
  KAFKA_SSL_KEY: optional("file of the client's key", filePath),
  KAFKA_SASL_MECHANISM: optional("how to log in", oneOf("plain", "scram-sha-256", "scram-sha-512")),
  KAFKA_SASL_USERNAME: optional("user name", text("any text that is not blank")),
  KAFKA_SASL_PASSWORD: optional("password", secret),
  OUTBOX_MAX_ATTEMPTS: withDefault("refusals of one row's content before it is parked", "5", wholeNumber(1, 1000)),
  OUTBOX_KEY_POLICY: withDefault(
    "with a parked row, later rows of its key go on (`park`) or wait (`block`)",
    "park",
    oneOf("park", "block")
  ),
  OUTBOX_RETENTION: withDefault("how long published rows are kept", "7d", window),
  CLOSINGS_RETENTION: withDefault("how long evidence is kept", "90d", window),
  REALTIME_MAX_AGE: withDefault("when a push has lost its use", "24h", window),
  RECORDER_URL: optional("where the stop signal is posted", httpUrl, "unset: the signal is logged as not configured"),
  RECORDER_SECRET: optional("key that signs the stop signal; required with `RECORDER_URL`", secret),
  REALTIME_HUB_URL: optional("where a hub push is posted", httpUrl, "unset: rows wait"),
  REALTIME_HUB_SECRET: optional("key that signs a push; required with `REALTIME_HUB_URL`", secret),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(
    "traces and metrics over OTLP; other standard `OTEL_*` names hold too",
    httpUrl,
    "unset: off"
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: optional("the same for traces alone", httpUrl),
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: optional("the same for metrics alone", httpUrl),
  LOG_LEVEL: withDefault(
    "least level that is logged",
    "info",
    oneOf("Trace", "Debug", "Info", "Warn", "Error", "Fatal", "None")
  ),
  LOG_FORMAT: optional("form of the log", oneOf("json", "pretty"), "pretty on a terminal, else json")
}

export type Name = keyof typeof table
export type Values = { readonly [K in Name]: (typeof table)[K] extends Variable<infer A> ? A : never }
export const names = Object.keys(table) as ReadonlyArray<Name>
