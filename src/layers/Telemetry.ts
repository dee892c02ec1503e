/**
 * Traces and metrics over OTLP (M), on as soon as an endpoint is set. Nothing of OpenTelemetry is loaded while it is off.
 * A collector that is away costs a warning now and then and at most three seconds at the end, never the worker.
 */
import { Clock, ConfigProvider, Context, Duration, Effect, Layer } from "effect"
import { type Signals, signals } from "../services/SettingsTelemetry.ts"

type Environment = Readonly<Record<string, string | undefined>>

const serviceName = "conference-room-reaper"

const flushLimit = Duration.seconds(3)

const warningDistance = Duration.toNanosUnsafe(Duration.minutes(1))

type Warn = (problem: string) => void

/** At most one warning a minute for each source: a collector that is away for a day must not fill the log. */
const makeWarn = (context: Context.Context<never>, source: string): Warn => {
  const clock = Context.get(context, Clock.Clock)
  let quietUntil = clock.monotonicTimeNanosUnsafe()
  let unsaid = 0
  return (problem) => {
    const now = clock.monotonicTimeNanosUnsafe()
    if (now < quietUntil) {
      unsaid++
      return
    }
    const annotations = { source, problem, ...(unsaid > 0 ? { alsoUnsaid: unsaid } : {}) }
    quietUntil = now + warningDistance
    unsaid = 0
    Effect.runForkWith(context)(Effect.logWarning("telemetry is not going out").pipe(Effect.annotateLogs(annotations)))
  }
}

interface Exporter<Batch> {
  export(batch: Batch, done: (result: { code: number; error?: Error }) => void): void
}

// An AggregateError, which is what a name of several addresses fails with, has a code and no message.
const reason = (error: NodeJS.ErrnoException | undefined): string =>
  error?.message || (error?.code ?? error?.name ?? "the export failed")

/** A failed export is said and forgotten: passed on, it would reject the flush and die in the finalizer. */
const tolerant = <Batch, E extends Exporter<Batch>>(exporter: E & Exporter<Batch>, warn: Warn): E => {
  const send = exporter.export.bind(exporter)
  exporter.export = (batch, done) =>
    send(batch, ({ code, error }) => {
      if (code !== 0) warn(reason(error))
      done({ code: 0 })
    })
  return exporter
}

const spanProcessor = async (warn: Warn) => {
  const [{ OTLPTraceExporter }, { BatchSpanProcessor }] = await Promise.all([
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/sdk-trace-base")
  ])
  return new BatchSpanProcessor(tolerant(new OTLPTraceExporter(), warn))
}

const positiveMillis = (text: string | undefined): number | undefined => {
  const value = Number(text)
  return Number.isInteger(value) && value > 0 && value < 2 ** 31 ? value : undefined
}

// The reader alone does not read the environment as the other parts of OpenTelemetry do.
const metricReader = async (env: Environment, warn: Warn) => {
  const [{ OTLPMetricExporter }, { PeriodicExportingMetricReader }] = await Promise.all([
    import("@opentelemetry/exporter-metrics-otlp-http"),
    import("@opentelemetry/sdk-metrics")
  ])
  const exportIntervalMillis = positiveMillis(env.OTEL_METRIC_EXPORT_INTERVAL) ?? 60_000
  return new PeriodicExportingMetricReader({
    exporter: tolerant(new OTLPMetricExporter(), warn),
    exportIntervalMillis,
    exportTimeoutMillis: Math.min(positiveMillis(env.OTEL_METRIC_EXPORT_TIMEOUT) ?? 30_000, exportIntervalMillis)
  })
}

const namesItsService = (env: Environment): boolean =>
  Boolean(env.OTEL_SERVICE_NAME) || /(^|,)\s*service\.name\s*=/.test(env.OTEL_RESOURCE_ATTRIBUTES ?? "")

interface Exporting {
  forceFlush(): Promise<void>
  shutdown(): Promise<void>
}

type Source = readonly [name: string, end: () => Promise<void>]

/** Takes the end out of the SDK's hands: it cuts off without a word, and dies of a flush that is rejected. */
const source = (name: string, exporting: Exporting): Source => {
  const end = exporting.shutdown.bind(exporting)
  exporting.shutdown = exporting.forceFlush = () => Promise.resolve()
  return [name, end]
}

const isLost = ([, end]: Source): Effect.Effect<boolean> =>
  Effect.tryPromise(end).pipe(
    Effect.isFailure,
    Effect.interruptible,
    Effect.timeoutOrElse({ duration: flushLimit, orElse: () => Effect.succeed(true) })
  )

/** All sources side by side, within one limit. What is still under way then is lost, and is said. */
const lastFlush = (sources: ReadonlyArray<Source>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const lost = yield* Effect.filter(sources, isLost, { concurrency: "unbounded" })
    if (lost.length === 0) return
    yield* Effect.logWarning("the last telemetry was not sent").pipe(
      Effect.annotateLogs({
        source: lost.map(([name]) => name).join(", "),
        problem: "the collector did not take it in time"
      })
    )
  })

const load = async (env: Environment, on: Signals, context: Context.Context<never>) => {
  const NodeSdk = await import("@effect/opentelemetry/NodeSdk")
  const spans = on.traces ? await spanProcessor(makeWarn(context, "traces")) : undefined
  const metrics = on.metrics ? await metricReader(env, makeWarn(context, "metrics")) : undefined
  const sources = [...(spans ? [source("traces", spans)] : []), ...(metrics ? [source("metrics", metrics)] : [])]
  const configuration = {
    spanProcessor: spans,
    metricReader: metrics,
    metricTemporality:
      env.OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE?.toLowerCase() === "delta"
        ? ("delta" as const)
        : ("cumulative" as const),
    resource: namesItsService(env) ? undefined : { serviceName }
  }
  return Layer.effectDiscard(Effect.addFinalizer(() => lastFlush(sources))).pipe(
    Layer.provideMerge(NodeSdk.layer(() => configuration))
  )
}

/** Warnings go to the loggers that are in force where the layer is built. */
export const layer = (env: Environment): Layer.Layer<never> => {
  const on = signals(env)
  if (!on.traces && !on.metrics) return Layer.empty
  return Effect.context<never>().pipe(
    Effect.flatMap((context) => Effect.tryPromise(() => load(env, on, context))),
    Effect.catch(({ cause }) =>
      Effect.as(Effect.logWarning("telemetry could not be set up").pipe(Effect.annotateLogs({ cause })), Layer.empty)
    ),
    Layer.unwrap,
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnvRecord(env)))
  )
}
