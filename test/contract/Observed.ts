/** What a cycle shows to the outside: its log lines, its spans, and how far it moved each metric. */
import { Cause, Effect, Logger, Metric, References, Tracer } from "effect"

export interface Line {
  readonly level: string
  readonly message: unknown
  readonly annotations: Readonly<Record<string, unknown>>
  readonly cause: string
}

export interface Series {
  /** A counter's count, a gauge's value or a histogram's number of observations, by name and labels as in Prometheus. */
  readonly get: (name: string) => number
  readonly names: ReadonlyArray<string>
}

const valueOf = (state: object): number =>
  "count" in state ? Number(state.count) : "value" in state ? Number(state.value) : Number.NaN

const labels = (attributes: Metric.Metric.AttributeSet | undefined): string => {
  const pairs = Object.entries(attributes ?? {}).map(([key, value]) => `${key}="${String(value)}"`)
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`
}

/** All metrics as they stand; 0 for one that is not there. */
export const series: Effect.Effect<Series> = Effect.map(Metric.snapshot, (snapshots) => {
  const values = new Map(snapshots.map((s) => [`${s.id}${labels(s.attributes)}`, valueOf(s.state)]))
  return { get: (name) => values.get(`messenger_conf_reaper_${name}`) ?? 0, names: [...values.keys()] }
})

export const collectLines = (lines: Array<Line>) =>
  Logger.layer([
    Logger.make(({ logLevel, message, fiber, cause }) => {
      const annotations = fiber.getRef(References.CurrentLogAnnotations)
      lines.push({ level: logLevel, message: [message].flat()[0], annotations, cause: Cause.pretty(cause) })
    })
  ])

const collectSpans = (spans: Array<Tracer.Span>) =>
  Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })

/** Runs the effect and tells what it showed; `moved` is the difference that it made to a metric. */
export const observed = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const lines: Array<Line> = []
  const spans: Array<Tracer.Span> = []
  const before = yield* series
  const result = yield* effect.pipe(
    Effect.withTracer(collectSpans(spans)),
    Effect.provide(collectLines(lines)),
    Effect.provideService(References.MinimumLogLevel, "Debug")
  )
  const after = yield* series
  return {
    result,
    lines,
    spans,
    moved: (name: string) => after.get(name) - before.get(name),
    value: after.get,
    saying: (message: string) => lines.filter((line) => line.message === message)
  }
})
