import { readFileSync } from "node:fs"
import { Duration, Option, Redacted, Result } from "effect"
import { assert, describe, expect, it } from "vitest"
import * as ReaperOptions from "../../src/services/ReaperOptions.ts"
import * as Settings from "../../src/services/Settings.ts"
import type { ConfigurationError } from "../../src/services/SettingsError.ts"
import { names } from "../../src/services/SettingsTable.ts"

const host = { hostname: "box", pid: 7 }
const accept = (env: Settings.Environment) => Result.getOrThrow(Settings.parse(env, host))
const refuse = (env: Settings.Environment): ConfigurationError => {
  const result = Settings.parse(env, host)
  assert(Result.isFailure(result), "the environment was accepted")
  return result.failure
}
const refusedNames = (env: Settings.Environment) => refuse(env).problems.map(({ name }) => name)

describe("defaults", () => {
  it("are the specification's when nothing is set (O)", () => {
    const settings = accept({})
    expect(settings.reaper).toEqual({ ...ReaperOptions.defaults, instance: "box-7" })
    expect(settings.callsEnabled).toBe(true)
    expect(settings.http).toEqual({ host: "0.0.0.0", port: 9464 })
    expect(settings.outbox).toEqual({ maxAttempts: 5, keyPolicy: "park", retention: Duration.days(7) })
    expect(settings.realtimeMaxAge).toEqual(Duration.hours(24))
    expect(settings.log).toEqual({ level: "Info", format: Option.none() })
    expect(settings.database).toEqual({
      url: Option.none(),
      poolSize: 10,
      preparedStatements: true,
      listenUrl: Option.none()
    })
    expect([settings.recorder, settings.hub, settings.kafka]).toEqual([Option.none(), Option.none(), Option.none()])
    expect(settings.telemetryOff).toEqual([expect.stringContaining("OTLP is off")])
    expect(settings.warnings).toEqual([])
  })

  it("hold for an empty variable as for an absent one", () => {
    const empty = Object.fromEntries(names.map((name) => [name, ""]))
    expect(accept({ ...empty, HOSTNAME: "" })).toEqual(accept({}))
  })

  it("name the instance after HOSTNAME where there is one", () => {
    expect(accept({ HOSTNAME: "pod-1" }).reaper.instance).toBe("pod-1-7")
  })
})

describe("reading", () => {
  it("takes every option of the specification (O)", () => {
    const { reaper } = accept({
      REAPER_POLLING_INTERVAL: "PT10S",
      REAPER_EMPTY_ROOM_GRACE: "5s",
      REAPER_PROVISION_TIMEOUT: "00:00:07",
      REAPER_STALE_LIVE_TIMEOUT: "3d",
      REAPER_BATCH_SIZE: "10000",
      REAPER_LOCK_TTL: "1m30s",
      REAPER_MAX_RUN_DURATION: "89 seconds",
      REAPER_MAX_CLOCK_SKEW: "0",
      REAPER_PROVISION_FAILED_SIGNAL: "No",
      CLOSINGS_RETENTION: "3650d"
    })
    expect(reaper).toEqual({
      pollingInterval: Duration.seconds(10),
      emptyRoomGrace: Duration.seconds(5),
      provisionTimeout: Duration.seconds(7),
      staleLiveTimeout: Duration.days(3),
      batchSize: 10_000,
      lockTtl: Duration.seconds(90),
      maxRunDuration: Duration.seconds(89),
      maxClockSkew: Duration.zero,
      provisionFailedSignal: false,
      closingsRetention: Duration.days(3650),
      instance: "box-7"
    })
  })

  it.each(["true", "TRUE", "1", "yes", "on"])("takes %s for true", (text) => {
    expect(accept({ CONFERENCE_CALLS_ENABLED: text }).callsEnabled).toBe(true)
  })

  it.each(["false", "False", "0", "no", "OFF"])("takes %s for false", (text) => {
    expect(accept({ CONFERENCE_CALLS_ENABLED: text }).callsEnabled).toBe(false)
  })

  it("takes brokers with blanks around them, and login and TLS for them", () => {
    const kafka = Option.getOrThrow(
      accept({
        KAFKA_BROKERS: "a.example:9092 , [::1]:9093",
        KAFKA_CLIENT: "platformatic",
        KAFKA_SSL_CA: "/etc/ca.pem",
        KAFKA_SASL_MECHANISM: "SCRAM-SHA-512",
        KAFKA_SASL_USERNAME: "reaper",
        KAFKA_SASL_PASSWORD: "hush"
      }).kafka
    )
    expect(kafka).toEqual({
      brokers: ["a.example:9092", "[::1]:9093"],
      client: "platformatic",
      ssl: Option.some({ ca: Option.some("/etc/ca.pem"), cert: Option.none(), key: Option.none() }),
      sasl: Option.some({ mechanism: "scram-sha-512", username: "reaper", password: Redacted.make("hush") })
    })
  })

  it("leaves TLS off without a KAFKA_SSL_* file or KAFKA_SSL", () => {
    expect(Option.map(accept({ KAFKA_BROKERS: "a:1" }).kafka, ({ ssl }) => ssl)).toEqual(Option.some(Option.none()))
  })

  it.each([
    "postgres://u:p@db.example:6432/app?sslmode=verify-full",
    "postgresql://u@[::1]/app",
    "postgres:///app?host=/var/run/postgresql",
    "postgres://u:a%2Fb%40c@db/app"
  ])("takes the database URL %s", (url) => {
    expect(accept({ DATABASE_URL: url }).database.url).toEqual(Option.some(Redacted.make(url)))
  })

  it.each(["localhost", "127.0.0.1", "::", "::1", "fe80::1%eth0", "::ffff:10.0.0.1", "reaper_1.example", "a.", "4.b"])(
    "takes the host %s (O)",
    (host) => {
      expect(accept({ HTTP_HOST: host }).http.host).toBe(host)
    }
  )

  it("takes recorder and hub with their secrets (R10, X2)", () => {
    const settings = accept({
      RECORDER_URL: "https://rec.example/stop",
      RECORDER_SECRET: "r",
      REALTIME_HUB_URL: "http://hub/push",
      REALTIME_HUB_SECRET: "h"
    })
    expect(settings.recorder).toEqual(Option.some({ url: "https://rec.example/stop", secret: Redacted.make("r") }))
    expect(settings.hub).toEqual(Option.some({ url: "http://hub/push", secret: Redacted.make("h") }))
  })

  it.each([
    ["debug", "Debug"],
    ["WARN", "Warn"],
    ["None", "None"]
  ])("takes the log level %s in any case", (text, level) => {
    expect(accept({ LOG_LEVEL: text }).log.level).toBe(level)
  })
})

const durations = names.filter((name) => /_(INTERVAL|GRACE|TIMEOUT|TTL|DURATION|SKEW|RETENTION|AGE)$/.test(name))

describe("refusing", () => {
  it.each(
    durations.flatMap((name) =>
      ["0 millis", "-5 seconds", "Infinity", "30", "NaN", "soon", "1000000000d", "0.5ms", "PT0.0015S", "24:00:00"].map(
        (value) => [name, value] as const
      )
    )
  )("stops at %s=%s (O)", (name, value) => {
    if (name === "REAPER_MAX_CLOCK_SKEW" && value === "0 millis") return
    expect(refuse({ [name]: value }).problems).toEqual([
      expect.objectContaining({ name, value, problem: expect.any(String), allowed: expect.stringContaining("90s") })
    ])
  })

  it.each(["0", "-1", "1.5", "1e3", "1000000000", "10001", "abc", " 5", "0x10", "٣", "5n", "+5"])(
    "stops at a batch size of '%s' (O)",
    (value) => {
      expect(refuse({ REAPER_BATCH_SIZE: value }).problems).toEqual([
        {
          name: "REAPER_BATCH_SIZE",
          value,
          problem: expect.any(String),
          allowed: "a whole number from 1 to 10000, decimal digits only"
        }
      ])
    }
  )

  it.each(["REAPER_POLLING_INTERVAL", "REAPER_LOCK_TTL", "REAPER_MAX_RUN_DURATION"])(
    "keeps %s within 24 h, far below the longest timer",
    (name) => {
      expect(refuse({ [name]: "30 days" }).problems[0]).toMatchObject({ name, problem: "is longer than 24h" })
    }
  )

  it("accepts windows of 30 days, since no timer waits for them", () => {
    expect(accept({ REAPER_STALE_LIVE_TIMEOUT: "30 days" }).reaper.staleLiveTimeout).toEqual(Duration.days(30))
  })

  it.each([
    ["DATABASE_POOL_SIZE", "0"],
    ["DATABASE_PREPARED_STATEMENTS", "maybe"],
    ["REAPER_PROVISION_FAILED_SIGNAL", "2"],
    ["CONFERENCE_CALLS_ENABLED", "nope"],
    ["HTTP_HOST", "  "],
    ["HTTP_HOST", "a b"],
    ["HTTP_PORT", "65536"],
    ["HTTP_PORT", "-1"],
    ["KAFKA_BROKERS", "kafka"],
    ["KAFKA_BROKERS", "a:9092,,b:9092"],
    ["KAFKA_BROKERS", "a:0"],
    ["KAFKA_BROKERS", "kafka://a:9092"],
    ["KAFKA_CLIENT", "librdkafka"],
    ["KAFKA_SSL", "tls"],
    ["OUTBOX_MAX_ATTEMPTS", "0"],
    ["OUTBOX_KEY_POLICY", "skip"],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://collector"],
    ["LOG_LEVEL", "verbose"],
    ["LOG_FORMAT", "xml"]
  ])("stops at %s=%s and quotes it", (name, value) => {
    const [problem, ...others] = refuse({ [name]: value }).problems
    expect(others).toEqual([])
    expect(problem?.name).toBe(name)
    if (name !== "OTEL_EXPORTER_OTLP_ENDPOINT") expect(problem?.value).toBe(value)
  })

  it.each([
    ...["a_b c", " 127.0.0.1", "http://a", "a:80", "a/b", "a,b", "é"],
    ...["[::1]", ":::1", "::1%", "256.0.0.1", "1.2.3", "1234", "1234."],
    ...["-a", "a-.b", "a..b", ".a", ".", "a".repeat(64), `${"a.".repeat(127)}a`]
  ])("stops at the host %j, beside all that is wrong (O)", (HTTP_HOST) => {
    expect(refuse({ HTTP_HOST, HTTP_PORT: "x" }).problems).toEqual([
      {
        name: "HTTP_HOST",
        value: HTTP_HOST,
        problem: expect.stringMatching(/^is neither a host name nor an IP address/),
        allowed: "a host name or an IP address"
      },
      expect.objectContaining({ name: "HTTP_PORT" })
    ])
  })

  it("names every wrong variable in one message, with value and what is allowed (O)", () => {
    const { message } = refuse({
      REAPER_POLLING_INTERVAL: "30",
      REAPER_BATCH_SIZE: "abc",
      REAPER_EMPTY_ROOM_GRACE: "5h",
      DATABASE_URL: "mysql://root:hunter2@db/x",
      RECORDER_URL: "http://rec"
    })
    expect(message.split("\n")).toEqual([
      "wrong configuration, 5 problems:",
      "  DATABASE_URL is not a postgres:// or postgresql:// URL; allowed: a postgres:// or postgresql:// URL of one host, its sslmode one of disable, prefer, allow, require, verify-ca, verify-full",
      '  REAPER_POLLING_INTERVAL="30" is a bare number and has no unit; allowed: a duration longer than 0 up to 24h in whole milliseconds: 90s, 2m, 4h, 1h30m, 90 seconds, PT90S or hh:mm:ss',
      '  REAPER_BATCH_SIZE="abc" is not a whole number in decimal digits; allowed: a whole number from 1 to 10000, decimal digits only',
      '  REAPER_EMPTY_ROOM_GRACE="5h" is not shorter than REAPER_STALE_LIVE_TIMEOUT (4h); allowed: less than REAPER_STALE_LIVE_TIMEOUT',
      "  RECORDER_SECRET is not set, but RECORDER_URL is; allowed: the key that signs the stop signal"
    ])
  })

  it("keeps a value with line breaks on its own line", () => {
    expect(refuse({ LOG_FORMAT: "a\nb" }).message.split("\n")).toHaveLength(2)
  })
})

describe("cross checks", () => {
  it.each(["2m", "3m"])("stops at MaxRunDuration %s with LockTtl 2m (O)", (value) => {
    expect(refuse({ REAPER_MAX_RUN_DURATION: value, REAPER_LOCK_TTL: "2m" }).problems).toEqual([
      {
        name: "REAPER_MAX_RUN_DURATION",
        value,
        problem: "is not shorter than REAPER_LOCK_TTL (2m)",
        allowed: "less than REAPER_LOCK_TTL"
      }
    ])
  })

  it("blames the variable that was set, not the default it collides with (O)", () => {
    expect(refuse({ REAPER_LOCK_TTL: "30s" }).problems).toEqual([
      {
        name: "REAPER_LOCK_TTL",
        value: "30s",
        problem: "is not longer than REAPER_MAX_RUN_DURATION (30s)",
        allowed: "more than REAPER_MAX_RUN_DURATION"
      }
    ])
  })

  it("stops at EmptyRoomGrace equal to StaleLiveTimeout (O)", () => {
    expect(refusedNames({ REAPER_EMPTY_ROOM_GRACE: "4h" })).toEqual(["REAPER_EMPTY_ROOM_GRACE"])
  })

  it("is silent about a pair of which one value is unreadable", () => {
    expect(refusedNames({ REAPER_LOCK_TTL: "x", REAPER_MAX_RUN_DURATION: "5h" })).toEqual(["REAPER_LOCK_TTL"])
  })

  it("wants a database URL in production", () => {
    expect(refusedNames({ NODE_ENV: "production" })).toEqual(["DATABASE_URL"])
    expect(refusedNames({ NODE_ENV: "production", DATABASE_URL: "" })).toEqual(["DATABASE_URL"])
    expect(accept({ NODE_ENV: "production", DATABASE_URL: "postgres://db/x" }).database.poolSize).toBe(10)
  })

  it.each([
    [{ RECORDER_URL: "http://r" }, ["RECORDER_SECRET"]],
    [{ REALTIME_HUB_URL: "http://h" }, ["REALTIME_HUB_SECRET"]],
    [{ RECORDER_URL: "http://r", RECORDER_SECRET: "" }, ["RECORDER_SECRET"]],
    [{ DATABASE_LISTEN_URL: "postgres://db/x" }, ["DATABASE_URL"]],
    [{ KAFKA_SSL_CERT: "c" }, ["KAFKA_SSL_KEY"]],
    [{ KAFKA_SSL_KEY: "k" }, ["KAFKA_SSL_CERT"]],
    [{ KAFKA_SSL: "false", KAFKA_SSL_CA: "ca" }, ["KAFKA_SSL"]],
    [{ KAFKA_SASL_MECHANISM: "plain" }, ["KAFKA_SASL_USERNAME", "KAFKA_SASL_PASSWORD"]],
    [{ KAFKA_SASL_USERNAME: "u", KAFKA_SASL_PASSWORD: "p" }, ["KAFKA_SASL_MECHANISM"]],
    [{ KAFKA_SASL_MECHANISM: "gssapi", KAFKA_SASL_USERNAME: "u", KAFKA_SASL_PASSWORD: "p" }, ["KAFKA_SASL_MECHANISM"]]
  ])("stops at %j for want of %j", (env, expected) => {
    expect(refusedNames(env)).toEqual(expected)
  })
})

describe("a database URL with special characters in its credentials", () => {
  const wouldBePassword = (text: string) => `postgres://u:S3CR${text}ETPW@127.0.0.1:1/x`
  const wouldBeUser = (text: string) => `postgres://S3CR${text}ETPW:pw@127.0.0.1:1/x`

  it.each([
    ["#", "refused"],
    ["?", "refused"],
    ["/", "refused"],
    ["@", "taken"],
    [":", "taken"],
    ["[", "taken"],
    ["]", "taken"],
    ["%", "refused"],
    [" ", "taken"],
    ["+", "taken"],
    ["&", "taken"],
    ["\\", "taken"],
    ["\n", "refused"]
  ])("with %j alone is %s, in the user name as in the password", (character, expected) => {
    for (const url of [wouldBePassword(character), wouldBeUser(character)]) {
      const result = Settings.parse({ DATABASE_URL: url }, host)
      expect([url, Result.isSuccess(result) ? "taken" : "refused"]).toEqual([url, expected])
    }
  })

  const specials = [..."#?/@:[]% ,&=+\\"]
  const texts = [
    ...specials,
    ...specials.flatMap((a) => specials.map((b) => `${a}ET${b}`)),
    "@ETPW#?",
    "@ETPW?#",
    "@x:1/"
  ]

  it.each([
    ["password", (text: string) => ["u", `S3CR${text}ETPW`] as const],
    ["user name", (text: string) => [`S3CR${text}ETPW`, "pw"] as const]
  ])("is refused with advice or read rightly, never split: any two in the %s (O)", (_, credentialsWith) => {
    for (const text of texts) {
      const credentials = credentialsWith(text).join(":")
      const DATABASE_URL = `postgres://${credentials}@127.0.0.1:1/x`
      const result = Settings.parse({ DATABASE_URL }, host)
      if (Result.isFailure(result)) {
        expect([text, result.failure.message]).toEqual([text, expect.stringContaining("percent-encode special char")])
        expect(result.failure.message).not.toMatch(/S3CR|ETPW/)
        continue
      }
      const url = new URL(DATABASE_URL)
      const read = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
      expect([text, read, url.host, url.pathname, url.search]).toEqual([text, credentials, "127.0.0.1:1", "/x", ""])
      expect(Settings.describe(result.success)).toContainEqual(["DATABASE_URL", "127.0.0.1:1/x", false])
    }
  })

  it.each([
    "postgres://h/x?user=u&password=S3CR#ETPW",
    "postgres://h/x?user=u&password=S3CR@ETPW",
    "postgres://h/x?user=u&password=S3CR&ETPW",
    "postgres://h/x?user=u&password=S3CR%ETPW",
    "postgres://h/x?user=u&password=S3CR+ETPW",
    "postgres://u:pw@h/x#S3CR",
    "postgres://u:pw@h:0/x"
  ])("is refused as %s", (url) => {
    const { message, problems } = refuse({ DATABASE_URL: url })
    expect(problems).toHaveLength(1)
    expect(message).not.toMatch(/S3CR|ETPW/)
  })

  it.each([
    `postgres://u:${encodeURIComponent("#?/@:[]% ")}@h/x`,
    `postgres://h/x?user=u&password=${encodeURIComponent("#?/@:[]% +&=")}`,
    "postgres://u:pw@h/x?application_name=a?b/c:d"
  ])("is taken with them percent-encoded, or where they do no harm: %s", (url) => {
    expect(accept({ DATABASE_URL: url }).database.url).toEqual(Option.some(Redacted.make(url)))
  })
})

describe("secrets", () => {
  const hush = "hunter2"
  const broken: ReadonlyArray<Settings.Environment> = [
    { DATABASE_URL: `mysql://u:${hush}@db/x` },
    { DATABASE_URL: hush },
    { DATABASE_URL: `postgres:${hush}` },
    { DATABASE_URL: `postgres://u:${hush}@a,b/x` },
    { DATABASE_URL: `postgres://u:1/${hush}@db/x` },
    { DATABASE_URL: `postgres://u:1?${hush}@db/x` },
    { DATABASE_URL: `postgres://u:1#${hush}@db/x` },
    { DATABASE_URL: `postgres://u:1@/${hush}@db/x` },
    { DATABASE_URL: `postgres://u:1@${hush}#?@127.0.0.1:1/x` },
    { DATABASE_URL: `postgres://u:1@${hush}?@127.0.0.1:1/x` },
    { DATABASE_URL: `postgres://u:${hush}%zz@db/x` },
    { DATABASE_URL: `postgres://u:${hush}@db/x?sslmode=no-verify` },
    { DATABASE_URL: `postgres://u:${hush}@db/x?connect_timeout=soon` },
    { DATABASE_URL: `postgres://u:${hush}@db/x?port=99999` },
    { DATABASE_URL: "postgres://db/x", DATABASE_LISTEN_URL: `http://u:${hush}@db/x` },
    { RECORDER_URL: hush, RECORDER_SECRET: "https://rec" },
    { RECORDER_URL: `https://u:${hush}@rec/`, RECORDER_SECRET: hush },
    { RECORDER_URL: `ftp://rec/?key=${hush}`, RECORDER_SECRET: hush },
    { REALTIME_HUB_URL: `https://:${hush}@hub/?k=${hush}`, REALTIME_HUB_SECRET: hush },
    { KAFKA_BROKERS: `sasl://u:${hush}@kafka:9092` },
    { KAFKA_SASL_PASSWORD: hush }
  ]

  it.each(broken)("stay out of the refusal of %j", (env) => {
    const error = refuse(env)
    expect(error.message + JSON.stringify(error) + String(error)).not.toContain(hush)
  })

  it("stay out of the description, the settings' JSON and the database's line", () => {
    const settings = accept({
      DATABASE_URL: `postgres://u:${hush}@db.example/app?sslmode=disable&password=${hush}`,
      RECORDER_URL: `https://rec/stop?key=${hush}`,
      RECORDER_SECRET: hush,
      KAFKA_SASL_MECHANISM: "plain",
      KAFKA_SASL_USERNAME: "u",
      KAFKA_SASL_PASSWORD: hush
    })
    const described = Settings.describe(settings)
    expect(JSON.stringify(described)).not.toContain(hush)
    expect(described).toContainEqual(["DATABASE_URL", "db.example:5432/app", false])
    expect(described).toContainEqual(["RECORDER_URL", "https://rec/stop?<redacted>", false])
    expect(JSON.stringify(settings.database)).not.toContain(hush)
  })
})

describe("warnings", () => {
  it("point a misspelt REAPER_ name to the nearest known one and do not refuse", () => {
    expect(accept({ REAPER_POLING_INTERVAL: "1s", REAPER_PORT: "tcp://10.0.0.1:80" }).warnings).toEqual([
      "REAPER_POLING_INTERVAL is not known and has no effect; the nearest known name is REAPER_POLLING_INTERVAL",
      expect.stringMatching(/^REAPER_PORT is not known/)
    ])
  })

  it("tell of a secret without its URL and of a protocol that is not spoken", () => {
    expect(
      accept({
        RECORDER_SECRET: "s",
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4317",
        OTEL_EXPORTER_OTLP_PROTOCOL: "grpc"
      }).warnings
    ).toEqual([
      "RECORDER_SECRET has no effect: RECORDER_URL is not set",
      expect.stringContaining("OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported")
    ])
  })
})

describe("telemetry", () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" }
  const unset = "OTEL_EXPORTER_OTLP_ENDPOINT is not set"
  const isDisabled = "OTLP is off (OTEL_SDK_DISABLED is true): traces and metrics are not sent"
  const noTraces = "OTLP is off for traces (OTEL_TRACES_EXPORTER is none): they are not sent"
  const noMetrics = "OTLP is off for metrics (OTEL_METRICS_EXPORTER is none): they are not sent"
  it.each([
    [{}, [`OTLP is off (${unset}): traces and metrics are not sent`]],
    [{ OTEL_SERVICE_NAME: "x" }, [`OTLP is off (${unset}): traces and metrics are not sent`]],
    [endpoint, []],
    [
      { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://c/v1/traces" },
      [`OTLP is off for metrics (${unset}): they are not sent`]
    ],
    [
      { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "http://c/v1/metrics" },
      [`OTLP is off for traces (${unset}): they are not sent`]
    ],
    [{ ...endpoint, OTEL_SDK_DISABLED: "true" }, [isDisabled]],
    [{ OTEL_SDK_DISABLED: "TRUE" }, [isDisabled]],
    [{ ...endpoint, OTEL_SDK_DISABLED: "1" }, []],
    [{ ...endpoint, OTEL_TRACES_EXPORTER: "none" }, [noTraces]],
    [{ ...endpoint, OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none" }, [noTraces, noMetrics]],
    [{ ...endpoint, OTEL_TRACES_EXPORTER: "console, otlp" }, []]
  ])("with %j says what is not sent and why: %j", (env, expected) => {
    expect(accept(env).telemetryOff).toEqual(expected)
  })
})

describe("the table", () => {
  it("stands in the README as it is (O)", () => {
    const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8")
    expect(readme).toContain(Settings.optionsTable())
  })

  it("gives a Markdown row with as many cells for every variable", () => {
    const rows = Settings.optionsTable().split("\n")
    expect(rows).toHaveLength(names.length + 2)
    for (const row of rows) expect(row.match(/(?<!\\)\|/g)).toHaveLength(5)
  })

  it("describes every variable in its order and tells defaults apart", () => {
    const described = Settings.describe(accept({ REAPER_BATCH_SIZE: "7" }))
    expect(described.map(([name]) => name)).toEqual(names)
    expect(described).toContainEqual(["REAPER_BATCH_SIZE", "7", false])
    expect(described).toContainEqual(["REAPER_LOCK_TTL", "2m", true])
  })
})
