/** Both dispatchers on the in-memory database, with rows to deliver, and all that they show in the test's hand. */
import { Cause, Context, Duration, Effect, Layer, Logger, Metric, References, Tracer } from "effect"
import { TestClock } from "effect/testing"
import { topic } from "../../src/domain/ConferenceEnded.ts"
import { ChatId, ConferenceId } from "../../src/domain/ConferenceSession.ts"
import type { Instant } from "../../src/domain/Instant.ts"
import * as SystemCycleClock from "../../src/layers/SystemCycleClock.ts"
import * as DeliveryMetrics from "../../src/program/DeliveryMetrics.ts"
import * as DeliveryHealth from "../../src/services/DeliveryHealth.ts"
import { DeliveryOptions, defaults, type Options } from "../../src/services/DeliveryOptions.ts"
import * as MemoryDatabase from "../fakes/MemoryDatabase.ts"
import * as MemoryEventPublisher from "../fakes/MemoryEventPublisher.ts"
import * as MemoryHubPublisher from "../fakes/MemoryHubPublisher.ts"
import * as MemoryIntegrationOutbox from "../fakes/MemoryIntegrationOutbox.ts"
import * as MemoryRealtimeOutbox from "../fakes/MemoryRealtimeOutbox.ts"
import * as MemoryRunLock from "../fakes/MemoryRunLock.ts"
import * as MemoryWakeUps from "../fakes/MemoryWakeUps.ts"
import { type OutboxRow, type RealtimeRow, undelivered } from "../fakes/Tables.ts"

const id = (prefix: string, n: number) => `${prefix}-0000-4000-8000-${String(n).padStart(12, "0")}`

export const keyOf = (n: number) => id("dea10000", n)
export const chatOf = (n: number) => id("c4a70000", n)
export const correlationOf = (n: number) => id("10b00000", n)
const traceIdOf = (n: number) => n.toString(16).padStart(32, "a")
const spanIdOf = (n: number) => n.toString(16).padStart(16, "b")

const headersOf = (n: number) => ({
  "correlation-id": correlationOf(n),
  traceparent: `00-${traceIdOf(n)}-${spanIdOf(n)}-01`
})

/** An event of a key of its own, unless told otherwise. */
export const event = (n: number, change: { readonly key?: number; readonly padding?: number } = {}): OutboxRow => ({
  messageId: id("e0e00000", n),
  conferenceId: ConferenceId.make(id("cccccccc", n)),
  topic,
  messageKey: keyOf(change.key ?? n),
  eventType: topic,
  payload: { n, padding: "x".repeat(change.padding ?? 0) },
  headers: { "message-id": id("e0e00000", n), ...headersOf(n) },
  createdAt: 0n as Instant,
  ...undelivered(String(n))
})

/** A push of a chat of its own, unless told otherwise. */
export const signal = (n: number, chat = n): RealtimeRow => ({
  kind: "ConferenceEnded",
  targetKind: "ChatGroup",
  chatId: ChatId.make(chatOf(chat)),
  sessionKind: "Conference",
  sessionId: ConferenceId.make(id("cccccccc", n)),
  signal: "Ended",
  headers: headersOf(n),
  createdAt: 0n as Instant,
  ...undelivered(String(n))
})

export const count = <A>(length: number, of: (n: number) => A, from = 1): ReadonlyArray<A> =>
  Array.from({ length }, (_, i) => of(from + i))

export const addEvents = (...rows: ReadonlyArray<OutboxRow>) =>
  Effect.flatMap(MemoryDatabase.MemoryDatabase, (database) =>
    database.seed(
      "outbox",
      rows.map((row) => [row.messageId, row])
    )
  )

export const addSignals = (...rows: ReadonlyArray<RealtimeRow>) =>
  Effect.flatMap(MemoryDatabase.MemoryDatabase, (database) =>
    database.seed(
      "realtime",
      rows.map((row) => [String(row.id), row])
    )
  )

export const storedEvents = Effect.flatMap(MemoryDatabase.MemoryDatabase, (database) => database.committed("outbox"))
export const storedSignals = Effect.flatMap(MemoryDatabase.MemoryDatabase, (database) => database.committed("realtime"))

export const faults = Effect.map(MemoryDatabase.MemoryDatabase, (database) => database.faults)

/** Lets everything run that does not wait for time to pass. */
export const settle = Effect.repeat(TestClock.adjust(0), { times: 50 })

/** Time goes on in small steps until the condition holds, or the limit is reached. */
export const passTimeUntil = Effect.fnUntraced(function* (
  condition: Effect.Effect<boolean, never, MemoryDatabase.MemoryDatabase>,
  limit: Duration.Input
) {
  const steps = Duration.toSeconds(limit) / 10
  for (let step = 0; step < steps && !(yield* condition); step++) yield* TestClock.adjust("10 seconds")
})

/** Numbers of rows, for short assertions. */
export const ids = (rows: ReadonlyArray<{ readonly id: bigint }>) => rows.map((row) => Number(row.id))

interface Line {
  readonly level: string
  readonly message: unknown
  readonly annotations: Readonly<Record<string, unknown>>
  readonly cause: string
}

export class Shown extends Context.Service<
  Shown,
  { readonly lines: Array<Line>; readonly spans: Array<Tracer.NativeSpan> }
>()("test/Shown") {}

/** Log lines of at least INFO, without what they say beside level and message. */
export const said = Effect.map(Shown, ({ lines }) =>
  lines.filter(({ level }) => level !== "Debug").map(({ level, message }) => `${level} ${message}`)
)

const shown = Layer.unwrap(
  Effect.sync(() => {
    const lines: Array<Line> = []
    const spans: Array<Tracer.NativeSpan> = []
    const logger = Logger.make(({ logLevel, message, fiber, cause }) => {
      const annotations = fiber.getRef(References.CurrentLogAnnotations)
      lines.push({ level: logLevel, message: [message].flat()[0], annotations, cause: Cause.pretty(cause) })
    })
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        spans.push(span)
        return span
      }
    })
    return Layer.mergeAll(
      Logger.layer([logger]),
      Layer.succeed(Tracer.Tracer, tracer),
      Layer.succeed(References.MinimumLogLevel, "Debug"),
      Layer.succeed(Shown, { lines, spans })
    )
  })
)

/** A counter's count, a gauge's value or a histogram's number of observations, with the labels as in Prometheus. */
export const metric = (name: string) =>
  Effect.map(Metric.snapshot, (snapshots) => {
    const found = snapshots.find(({ id, attributes }) => {
      const labels = Object.entries(attributes ?? {}).map(([key, value]) => `${key}="${String(value)}"`)
      return name === (labels.length === 0 ? id : `${id}{${labels.join(",")}}`)
    })
    const state = found?.state
    if (state === undefined) return undefined
    return "count" in state ? Number(state.count) : "value" in state ? Number(state.value) : undefined
  })

/** Everything anew for each test; time is the TestClock's and starts at 0, as `createdAt` of the rows. */
export const fresh = (keyPolicy: "park" | "block" = "park", options: Partial<Options> = {}) =>
  Layer.mergeAll(
    MemoryIntegrationOutbox.layer({ keyPolicy }),
    MemoryRealtimeOutbox.layer,
    MemoryRunLock.outboxLayer,
    MemoryRunLock.realtimeLayer
  ).pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        MemoryDatabase.layer,
        MemoryWakeUps.layer,
        MemoryEventPublisher.layer,
        MemoryHubPublisher.layer,
        SystemCycleClock.layer,
        DeliveryHealth.layer,
        DeliveryMetrics.layer,
        Layer.succeed(DeliveryOptions, { ...defaults, ...options })
      )
    ),
    Layer.provideMerge(Layer.merge(Layer.succeed(Metric.MetricRegistry, new Map()), shown))
  )
