import { spawn } from "node:child_process"
import dns from "node:dns"
import { once } from "node:events"
import { createServer, type IncomingHttpHeaders } from "node:http"
import { text } from "node:stream/consumers"
import { it } from "@effect/vitest"
import { Effect, Exit, Layer, Logger, Metric, References } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { afterEach, describe, expect, vi } from "vitest"
import * as Telemetry from "../../src/layers/Telemetry.ts"

interface Attribute {
  readonly key: string
  readonly value: Readonly<Record<string, unknown>>
}
interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: {
    readonly resourceSpans?: ReadonlyArray<{
      readonly resource: { readonly attributes: ReadonlyArray<Attribute> }
      readonly scopeSpans: ReadonlyArray<{
        readonly spans: ReadonlyArray<{ readonly name: string; readonly attributes: ReadonlyArray<Attribute> }>
      }>
    }>
    readonly resourceMetrics?: ReadonlyArray<{
      readonly scopeMetrics: ReadonlyArray<{
        readonly metrics: ReadonlyArray<{ readonly name: string } & Readonly<Record<string, unknown>>>
      }>
    }>
  }
}

/** Takes OTLP JSON and keeps it; `answer` false: takes it and never answers. */
const collector = (answer = true) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const received: Array<Received> = []
      const server = createServer(async (request, response) => {
        const body = JSON.parse(await text(request)) as Received["body"]
        received.push({ path: request.url ?? "", headers: request.headers, body })
        if (answer) response.setHeader("content-type", "application/json").end("{}")
      }).listen(0, "127.0.0.1")
      await once(server, "listening")
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      return { server, received, url: `http://127.0.0.1:${port}` }
    }),
    ({ server }) =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )

const work = Effect.gen(function* () {
  const items = Metric.counter("messenger_conf_reaper_items_total", { description: "items", incremental: true })
  yield* Metric.update(items.pipe(Metric.withAttributes({ outcome: "empty_timeout" })), 3)
  yield* Metric.update(items.pipe(Metric.withAttributes({ outcome: "stale_timeout" })), 0)
  yield* Metric.update(Metric.gauge("messenger_conf_reaper_active_backlog"), 2)
  const durations = Metric.histogram("messenger_conf_reaper_cycle_duration_seconds", { boundaries: [0.1, 1] })
  yield* Metric.update(durations, 0.5)
  yield* Metric.value(Metric.histogram("messenger_conf_reaper_lateness_seconds", { boundaries: [0.1, 1] }))
  return yield* PrometheusMetrics.format()
}).pipe(Effect.withSpan("reaper.cycle", { root: true, attributes: { correlationId: "run-1" } }))

const isolated = Effect.provideService(Metric.MetricRegistry, new Map())

// The OpenTelemetry packages read the process's own environment.
const withEnvironment = (env: Readonly<Record<string, string>>) => {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  return Telemetry.layer(process.env)
}
afterEach(() => {
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
})

const resourceOf = (received: ReadonlyArray<Received>) =>
  received
    .flatMap(({ body }) => body.resourceSpans ?? [])
    .flatMap(({ resource }) => resource.attributes)
    .map(({ key, value }) => [key, value.stringValue] as const)

const warningsInto = (logged: Array<string>) =>
  Logger.layer([
    Logger.make<unknown, void>(({ fiber, logLevel, message }) => {
      const annotations = JSON.stringify(fiber.getRef(References.CurrentLogAnnotations))
      logged.push(`${logLevel} ${String(message)} ${annotations}`)
    })
  ])

describe("with an endpoint", () => {
  it.live("sends the span of a cycle and every metric under its Prometheus name at the end (M)", () =>
    Effect.gen(function* () {
      const { received, url } = yield* collector()
      const exposition = yield* work.pipe(
        Effect.provide(withEnvironment({ OTEL_EXPORTER_OTLP_ENDPOINT: url })),
        isolated
      )

      const spans = received
        .filter(({ path }) => path === "/v1/traces")
        .flatMap(({ body }) => body.resourceSpans ?? [])
        .flatMap(({ scopeSpans }) => scopeSpans)
        .flatMap((scope) => scope.spans)
      expect(spans.map(({ name }) => name)).toEqual(["reaper.cycle"])
      expect(spans[0]?.attributes).toContainEqual({ key: "correlationId", value: { stringValue: "run-1" } })
      expect(resourceOf(received)).toContainEqual(["service.name", "conference-room-reaper"])

      const metrics = received
        .filter(({ path }) => path === "/v1/metrics")
        .flatMap(({ body }) => body.resourceMetrics ?? [])
        .flatMap(({ scopeMetrics }) => scopeMetrics)
        .flatMap((scope) => scope.metrics)
      const exposed = [...exposition.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)
      expect(metrics.map(({ name }) => name).toSorted()).toEqual(exposed.toSorted())
      expect(exposed).toContain("messenger_conf_reaper_items_total")

      const named = (name: string) => metrics.find((metric) => metric.name === name)
      expect(named("messenger_conf_reaper_items_total")).toMatchObject({
        sum: {
          isMonotonic: true,
          aggregationTemporality: 2,
          dataPoints: [
            { asDouble: 3, attributes: [{ key: "outcome", value: { stringValue: "empty_timeout" } }] },
            { asDouble: 0, attributes: [{ key: "outcome", value: { stringValue: "stale_timeout" } }] }
          ]
        }
      })
      expect(named("messenger_conf_reaper_active_backlog")).toMatchObject({ gauge: { dataPoints: [{ asDouble: 2 }] } })
      expect(named("messenger_conf_reaper_cycle_duration_seconds")).toMatchObject({
        histogram: { dataPoints: [{ count: 1, sum: 0.5, bucketCounts: [0, 1, 0], explicitBounds: [0.1, 1] }] }
      })
    }).pipe(Effect.scoped)
  )

  it.live("honours service name, resource attributes and headers", () =>
    Effect.gen(function* () {
      const { received, url } = yield* collector()
      const telemetry = withEnvironment({
        OTEL_EXPORTER_OTLP_ENDPOINT: url,
        OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=seven",
        OTEL_SERVICE_NAME: "other-name",
        OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=test"
      })
      yield* work.pipe(Effect.provide(telemetry), isolated)
      expect(resourceOf(received)).toEqual(
        expect.arrayContaining([
          ["service.name", "other-name"],
          ["deployment.environment", "test"]
        ])
      )
      expect(received.map(({ headers }) => headers["x-tenant"])).toEqual(received.map(() => "seven"))
    }).pipe(Effect.scoped)
  )

  it.live("takes service.name of OTEL_RESOURCE_ATTRIBUTES before its own", () =>
    Effect.gen(function* () {
      const { received, url } = yield* collector()
      const telemetry = withEnvironment({
        OTEL_EXPORTER_OTLP_ENDPOINT: url,
        OTEL_RESOURCE_ATTRIBUTES: "service.name=from-attributes"
      })
      yield* work.pipe(Effect.provide(telemetry), isolated)
      expect(resourceOf(received)).toContainEqual(["service.name", "from-attributes"])
    }).pipe(Effect.scoped)
  )

  it.live("sends metrics every OTEL_METRIC_EXPORT_INTERVAL", () =>
    Effect.gen(function* () {
      const { received, url } = yield* collector()
      const telemetry = withEnvironment({ OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_METRIC_EXPORT_INTERVAL: "20" })
      yield* work.pipe(
        Effect.andThen(
          Effect.promise(() =>
            vi.waitFor(() => expect(received.filter(({ path }) => path === "/v1/metrics").length).toBeGreaterThan(1))
          )
        ),
        Effect.provide(telemetry),
        isolated
      )
    }).pipe(Effect.scoped)
  )

  it.live.each([
    [{ OTEL_TRACES_EXPORTER: "none" }, ["/v1/metrics"]],
    [{ OTEL_METRICS_EXPORTER: "none" }, ["/v1/traces"]],
    [{ OTEL_SDK_DISABLED: "true" }, []]
  ] as const)("with %j sends to %j only", ([env, paths]) =>
    Effect.gen(function* () {
      const { received, url } = yield* collector()
      yield* work.pipe(Effect.provide(withEnvironment({ OTEL_EXPORTER_OTLP_ENDPOINT: url, ...env })), isolated)
      expect(received.map(({ path }) => path)).toEqual(paths)
    }).pipe(Effect.scoped)
  )
})

describe("with a collector that is away", () => {
  /** The process's own limit is three seconds; one flush after the other would take six. */
  const within = 5500
  const lost = (source: string) =>
    `Warn the last telemetry was not sent {"source":"${source}","problem":"the collector did not take it in time"}`
  const failed = (source: string, problem: string) =>
    `Warn telemetry is not going out {"source":"${source}","problem":"${problem}"}`

  const observed = Effect.fnUntraced(function* (
    env: Readonly<Record<string, string>>,
    until: (logged: ReadonlyArray<string>) => void = () => {}
  ) {
    const logged: Array<string> = []
    const [took, exit] = yield* work.pipe(
      Effect.andThen(Effect.promise(() => vi.waitFor(() => until(logged), { timeout: 10_000 }))),
      Effect.andThen(Effect.sync(() => performance.now())),
      Effect.provide(withEnvironment(env).pipe(Layer.provideMerge(warningsInto(logged)))),
      isolated,
      Effect.exit,
      Effect.map((ended) => [Exit.isSuccess(ended) ? performance.now() - ended.value : Number.NaN, ended] as const)
    )
    expect(Exit.isSuccess(exit)).toBe(true)
    expect(took).toBeLessThan(within)
    return logged
  })

  // The JSON of a line's annotations.
  const said = (line: string): Readonly<Record<string, unknown>> => JSON.parse(line.slice(line.indexOf("{")))
  const away = { OTEL_EXPORTER_OTLP_TIMEOUT: "500", OTEL_METRIC_EXPORT_INTERVAL: "50" }

  it.live("says once for each signal that nothing goes out, and why, however often it fails", () =>
    Effect.gen(function* () {
      const logged = yield* observed({ ...away, OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" }, (sofar) =>
        expect(sofar.length).toBeGreaterThan(0)
      )
      const problem = "connect ECONNREFUSED 127.0.0.1:1"
      expect(logged).toEqual([failed("metrics", problem), failed("traces", problem)])
    })
  )

  it.live("says why also where its name has several addresses", () =>
    Effect.gen(function* () {
      vi.spyOn(dns, "lookup").mockImplementation(((
        _host: string,
        _options: object,
        done: (...args: unknown[]) => void
      ) =>
        done(null, [
          { address: "127.0.0.1", family: 4 },
          { address: "127.0.0.2", family: 4 }
        ])) as unknown as typeof dns.lookup)
      const logged = yield* observed({ ...away, OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector.example:1" })
      expect(logged.map((line) => said(line).problem)).toEqual(["ECONNREFUSED", "ECONNREFUSED"])
    })
  )

  it.live("says that nothing goes out while it takes everything and answers nothing", () =>
    Effect.gen(function* () {
      const { url } = yield* collector(false)
      const logged = yield* observed(
        { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_EXPORTER_OTLP_TIMEOUT: "300", OTEL_BSP_SCHEDULE_DELAY: "20" },
        (sofar) => expect(sofar).toEqual([failed("traces", "Request timed out")])
      )
      expect(logged.slice(1)).toEqual([failed("metrics", "Request timed out")])
    }).pipe(Effect.scoped)
  )

  it.live("says at the end what was lost, when the last flush is refused until its three seconds are over", () =>
    Effect.gen(function* () {
      const logged = yield* observed({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" })
      expect(logged).toEqual([lost("traces, metrics")])
    })
  )

  it.live("says at the end what was lost, when nothing answers within the three seconds", () =>
    Effect.gen(function* () {
      const { url } = yield* collector(false)
      expect(yield* observed({ OTEL_EXPORTER_OTLP_ENDPOINT: url })).toEqual([lost("traces, metrics")])
    }).pipe(Effect.scoped)
  )

  it.live("says what was lost, and does not fail, when OpenTelemetry's own limit is the shorter one", () =>
    Effect.gen(function* () {
      const { url } = yield* collector(false)
      const logged = yield* observed({
        OTEL_EXPORTER_OTLP_ENDPOINT: url,
        OTEL_METRICS_EXPORTER: "none",
        OTEL_BSP_EXPORT_TIMEOUT: "50"
      })
      expect(logged).toEqual([lost("traces")])
    }).pipe(Effect.scoped)
  )

  it.live("names only the signal that was lost", () =>
    Effect.gen(function* () {
      const { url } = yield* collector()
      const hanging = yield* collector(false)
      const logged = yield* observed({
        OTEL_EXPORTER_OTLP_ENDPOINT: url,
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${hanging.url}/v1/traces`
      })
      expect(logged).toEqual([lost("traces")])
    }).pipe(Effect.scoped)
  )
})

const child = `
  const { createRequire } = await import("node:module")
  const { Effect } = await import("effect")
  const Telemetry = await import(${JSON.stringify(new URL("../../src/layers/Telemetry.ts", import.meta.url).href)})
  await Effect.runPromise(Effect.void.pipe(Effect.provide(Telemetry.layer(process.env))))
  const loaded = Object.keys(createRequire(import.meta.url).cache).filter((path) => path.includes("@opentelemetry"))
  console.log("loaded=" + (loaded.length > 0))
`
const loadsOpenTelemetry = (env: Readonly<Record<string, string>>) =>
  Effect.promise(async () => {
    const running = spawn(process.execPath, ["--input-type=module", "-e", child], {
      cwd: new URL("../..", import.meta.url),
      env: { PATH: process.env.PATH, ...env },
      stdio: ["ignore", "pipe", "inherit"]
    })
    return (await text(running.stdout)).trim().split("\n").at(-1)
  })

it.live("loads nothing of OpenTelemetry while it is off", () =>
  Effect.gen(function* () {
    expect(yield* loadsOpenTelemetry({})).toBe("loaded=false")
    expect(
      yield* loadsOpenTelemetry({
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1",
        OTEL_EXPORTER_OTLP_TIMEOUT: "100"
      })
    ).toBe("loaded=true")
  })
)
