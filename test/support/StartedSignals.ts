/** Recorder signals over an inline recorder, with their logs, counts and scope in the test's hand. */
import { Cause, Context, Effect, Exit, Layer, Logger, Metric, References, Scope } from "effect"
import { ConferenceId, RecordingId } from "../../src/domain/ConferenceSession.ts"
import type { StopRequest } from "../../src/domain/StopRequest.ts"
import * as RecorderSignals from "../../src/program/RecorderSignals.ts"
import { Recorder, type RecorderUnreachable, type StopResult } from "../../src/services/Recorder.ts"

export const requestFor = (n: number): StopRequest => ({
  recordingId: RecordingId.make(`3f0c0a52-6a5e-4b7e-9a5e-${String(n).padStart(12, "0")}`),
  externalRef: null,
  conferenceId: ConferenceId.make(`cccccccc-6a5e-4b7e-9a5e-${String(n).padStart(12, "0")}`),
  reason: "Timeout"
})
export const requests = (count: number, from = 0) => Array.from({ length: count }, (_, n) => requestFor(from + n))

interface Line {
  readonly level: string
  readonly message: unknown
  readonly annotations: Readonly<Record<string, unknown>>
  readonly cause: string
}

type RequestStop = (request: StopRequest) => Effect.Effect<StopResult, RecorderUnreachable>

/** Lets the workers run on, without time passing, until the condition holds. */
const until = (condition: Effect.Effect<boolean>) => Effect.repeat(Effect.yieldNow, { until: () => condition })

/** Signals over an inline recorder, in a scope that the test closes, with logs kept and a metric registry of its own. */
export const startSignals = (requestStop: RequestStop) =>
  Effect.gen(function* () {
    const lines: Array<Line> = []
    const logger = Logger.make(({ logLevel, message, fiber, cause }) => {
      const annotations = fiber.getRef(References.CurrentLogAnnotations)
      lines.push({ level: logLevel, message: [message].flat()[0], annotations, cause: Cause.pretty(cause) })
    })
    const scope = yield* Scope.make()
    const asked: Array<RecordingId> = []
    const recorder = Layer.succeed(Recorder, {
      requestStop: (request) => {
        asked.push(request.recordingId)
        return requestStop(request)
      }
    })
    const environment = Layer.mergeAll(
      Logger.layer([logger]),
      Layer.succeed(Metric.MetricRegistry, new Map()),
      Layer.succeed(References.MinimumLogLevel, "Debug")
    )
    const context = yield* RecorderSignals.layer.pipe(
      Layer.provide(recorder),
      Layer.provideMerge(environment),
      Layer.buildWithScope(scope)
    )
    const signals = Context.get(context, RecorderSignals.RecorderSignals)
    const countOf = (result: RecorderSignals.SignalResult) =>
      Metric.value(Metric.withAttributes(RecorderSignals.recorderSignalsTotal, { result })).pipe(
        Effect.map((state) => Number(state.count)),
        Effect.provide(context)
      )
    return {
      asked,
      warnings: () => lines.filter(({ level }) => level === "Warn"),
      offer: (requests: ReadonlyArray<StopRequest>) => signals.offer(requests).pipe(Effect.provide(context)),
      close: Scope.close(scope, Exit.void),
      count: countOf,
      reached: (result: RecorderSignals.SignalResult, count: number) =>
        until(Effect.map(countOf(result), (counted) => counted >= count)),
      askedFor: (count: number) => until(Effect.sync(() => asked.length >= count)),
      exposition: Effect.provide(Metric.snapshot, context)
    }
  })
