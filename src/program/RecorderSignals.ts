/**
 * Carries stop signals to the recorder after the commit (R10): a bounded queue and a few workers of its own, so that a
 * recorder that is slow, broken or silent delays neither a transition nor the next tick. Best effort: what does not fit
 * or fails is logged and counted, never handed back. At shutdown pending signals get a short bounded chance (L5).
 */
import { Cause, Context, Effect, Fiber, Layer, Metric, Option, Queue, References, Schedule, type Tracer } from "effect"
import type { StopRequest } from "../domain/StopRequest.ts"
import { Recorder, type RecorderUnreachable, type StopResult } from "../services/Recorder.ts"

const capacity = 1000
const workerCount = 4
const shutdownChance = "3 seconds"
const retries = { schedule: Schedule.exponential("200 millis").pipe(Schedule.jittered), times: 2 }

const signalResults = ["stopped", "not_configured", "disabled", "failed", "dropped"] as const
export type SignalResult = (typeof signalResults)[number]

export const recorderSignalsTotal = Metric.counter("messenger_conf_reaper_recorder_signals_total", {
  description: "Stop signals to the recorder by what became of them",
  incremental: true
})

const count = (result: SignalResult, by = 1) =>
  Metric.update(Metric.withAttributes(recorderSignalsTotal, { result }), by)

const resultOf = (result: StopResult): SignalResult => (result === "not-configured" ? "not_configured" : result)

export class RecorderSignals extends Context.Service<
  RecorderSignals,
  {
    /** Takes the requests over at once; never waits, never fails. One that is queued or under way is not taken twice. */
    readonly offer: (requests: ReadonlyArray<StopRequest>) => Effect.Effect<void>
  }
>()("conference-room-reaper/RecorderSignals") {}

/** What a worker needs of the offering fiber, so that logs and traces still lead to the cycle. */
interface Origin {
  readonly logAnnotations: Readonly<Record<string, unknown>>
  readonly spanAnnotations: Readonly<Record<string, unknown>>
  readonly links: ReadonlyArray<Tracer.SpanLink>
}

interface Signal {
  readonly request: StopRequest
  readonly origin: Origin
}

const currentOrigin: Effect.Effect<Origin> = Effect.gen(function* () {
  const span = yield* Effect.option(Effect.currentParentSpan)
  return {
    logAnnotations: yield* References.CurrentLogAnnotations,
    spanAnnotations: yield* References.TracerSpanAnnotations,
    links: Option.match(span, { onNone: () => [], onSome: (span) => [{ span, attributes: {} }] })
  }
})

const logFailure = (cause: Cause.Cause<RecorderUnreachable>) =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => Effect.logWarning("recorder signal failed", cause),
    onSome: ({ reason }) => Effect.logWarning("recorder signal failed").pipe(Effect.annotateLogs({ reason }))
  })

/** Never fails and never dies: a defect of the recorder's layer must not end the worker. */
const deliver = (recorder: Recorder["Service"], { request, origin }: Signal): Effect.Effect<SignalResult> => {
  const { recordingId, conferenceId } = request
  return Effect.suspend(() => recorder.requestStop(request)).pipe(
    Effect.retry({ ...retries, while: (error) => error.isRetryable }),
    Effect.tapCause(logFailure),
    // The cycle's span has ended by now: a root of its own, linked to it.
    Effect.withSpan("recorder.requestStop", {
      root: true,
      links: origin.links,
      attributes: { conferenceId, recordingId }
    }),
    Effect.matchCause({ onSuccess: resultOf, onFailure: (): SignalResult => "failed" }),
    Effect.annotateLogs({ recordingId, conferenceId }),
    Effect.provideService(References.CurrentLogAnnotations, origin.logAnnotations),
    Effect.provideService(References.TracerSpanAnnotations, origin.spanAnnotations)
  )
}

const logDropped = (why: string, dropped: number) =>
  Effect.logWarning(`recorder signals dropped: ${why}`).pipe(Effect.annotateLogs({ dropped }))

type Signals = Queue.Queue<Signal, Cause.Done>
/** Queued or under way. */
type Pending = Set<StopRequest["recordingId"]>

const work = (recorder: Recorder["Service"], queue: Signals, pending: Pending) =>
  Effect.gen(function* () {
    const signal = yield* Queue.take(queue)
    const result = yield* deliver(recorder, signal)
    // Both or neither: what an interrupted worker leaves in `pending` is counted as dropped.
    yield* Effect.sync(() => pending.delete(signal.request.recordingId)).pipe(
      Effect.andThen(count(result)),
      Effect.uninterruptible
    )
  }).pipe(Effect.forever)

/** The workers end by themselves once the closed queue is empty; what they leave when time is up is dropped. */
const drain = (queue: Signals, pending: Pending, workers: ReadonlyArray<Fiber.Fiber<unknown, unknown>>) =>
  Effect.gen(function* () {
    yield* Queue.end(queue)
    yield* Fiber.awaitAll(workers).pipe(Effect.timeoutOption(shutdownChance))
    yield* Fiber.interruptAll(workers)
    if (pending.size === 0) return
    yield* count("dropped", pending.size)
    yield* logDropped("the process stops", pending.size)
  })

const make = Effect.gen(function* () {
  const recorder = yield* Recorder
  const queue: Signals = yield* Queue.dropping<Signal, Cause.Done>(capacity)
  const pending: Pending = new Set()
  let overflowing = false
  yield* Effect.forEach(signalResults, (result) => count(result, 0), { discard: true })

  const offer = Effect.fnUntraced(function* (requests: ReadonlyArray<StopRequest>) {
    const origin = yield* currentOrigin
    let accepted = 0
    let dropped = 0
    for (const request of requests) {
      if (pending.has(request.recordingId)) continue
      if (Queue.offerUnsafe(queue, { request, origin })) {
        pending.add(request.recordingId)
        accepted += 1
      } else dropped += 1
    }
    if (accepted + dropped === 0) return
    // One line per burst: it lasts until an offer fits whole again.
    const startsBurst = dropped > 0 && !overflowing
    overflowing = dropped > 0
    if (dropped > 0) yield* count("dropped", dropped)
    if (startsBurst) yield* logDropped("the queue is full or closed", dropped)
  })

  const workers = yield* Effect.replicateEffect(Effect.forkScoped(work(recorder, queue, pending)), workerCount)
  // Registered after the workers were forked, so it runs before the scope interrupts them.
  yield* Effect.addFinalizer(() => drain(queue, pending, workers))
  return RecorderSignals.of({ offer })
})

export const layer: Layer.Layer<RecorderSignals, never, Recorder> = Layer.effect(RecorderSignals, make)
