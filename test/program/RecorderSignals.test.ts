import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, type Metric, Tracer } from "effect"
import { TestClock } from "effect/testing"
import { RecorderUnreachable, type StopResult } from "../../src/services/Recorder.ts"
import { requestFor, requests, startSignals } from "../support/StartedSignals.ts"

const retryable = new RecorderUnreachable({ reason: "the recorder answered 503", isRetryable: true })
const refused = new RecorderUnreachable({ reason: "the recorder answered 403", isRetryable: false })

describe("RecorderSignals", () => {
  it.effect("shows every result at 0 before the first signal (M)", () =>
    Effect.gen(function* () {
      const { exposition } = yield* startSignals(() => Effect.succeed("stopped"))
      const shown = (yield* exposition).map(({ id, attributes, state }) => [
        id,
        attributes?.result,
        Number((state as Metric.CounterState<number>).count)
      ])
      assert.sameDeepMembers(
        shown,
        ["stopped", "not_configured", "disabled", "failed", "dropped"].map((result) => [
          "messenger_conf_reaper_recorder_signals_total",
          result,
          0
        ])
      )
    })
  )

  it.effect("counts what the recorder says became of a signal (R10)", () =>
    Effect.gen(function* () {
      const results: ReadonlyArray<StopResult> = ["stopped", "not-configured", "disabled"]
      const signals = yield* startSignals(({ recordingId }) =>
        Effect.succeed(results[Number(recordingId.at(-1))] ?? "stopped")
      )
      yield* signals.offer(requests(3))
      yield* Effect.forEach(["stopped", "not_configured", "disabled"] as const, (result) => signals.reached(result, 1))
      for (const result of ["stopped", "not_configured", "disabled"] as const) {
        assert.strictEqual(yield* signals.count(result), 1)
      }
      assert.deepStrictEqual(signals.warnings(), [])
    })
  )

  it.effect("takes signals over at once while the recorder hangs (R10)", () =>
    Effect.gen(function* () {
      const signals = yield* startSignals(() => Effect.never)
      yield* Effect.uninterruptible(signals.offer(requests(100)))
      yield* signals.askedFor(4)
      yield* Effect.uninterruptible(signals.offer(requests(100, 100)))
      yield* TestClock.adjust(0)
      assert.strictEqual(signals.asked.length, 4)
    })
  )

  it.effect("asks the recorder four at a time, oldest first (R10)", () =>
    Effect.gen(function* () {
      let running = 0
      let most = 0
      const signals = yield* startSignals(() =>
        Effect.gen(function* () {
          running += 1
          most = Math.max(most, running)
          yield* Effect.sleep("1 second")
          running -= 1
          return "stopped" as const
        })
      )
      yield* signals.offer(requests(10))
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(most, 4)
      assert.strictEqual(yield* signals.count("stopped"), 10)
      assert.deepStrictEqual(
        signals.asked,
        requests(10).map(({ recordingId }) => recordingId)
      )
    })
  )

  it.effect("tries a retryable failure three times in all, further apart each time, then warns once (R10)", () =>
    Effect.gen(function* () {
      const signals = yield* startSignals(() => Effect.fail(retryable))
      yield* signals.offer(requests(1)).pipe(Effect.annotateLogs({ correlationId: "run-1" }))
      yield* TestClock.adjust("159 millis")
      assert.strictEqual(signals.asked.length, 1)
      yield* TestClock.adjust("81 millis")
      assert.strictEqual(signals.asked.length, 2)
      yield* TestClock.adjust("480 millis")
      assert.strictEqual(signals.asked.length, 3)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(signals.asked.length, 3)
      assert.strictEqual(yield* signals.count("failed"), 1)
      const { recordingId, conferenceId } = requestFor(0)
      assert.deepInclude(signals.warnings()[0], {
        message: "recorder signal failed",
        annotations: { correlationId: "run-1", recordingId, conferenceId, reason: retryable.reason }
      })
      assert.strictEqual(signals.warnings().length, 1)
    })
  )

  it.effect("counts a signal that came through on a retry as stopped, without a warning (R10)", () =>
    Effect.gen(function* () {
      let asked = 0
      const signals = yield* startSignals(() =>
        Effect.suspend(() => {
          asked += 1
          return asked < 3 ? Effect.fail(retryable) : Effect.succeed("stopped")
        })
      )
      yield* signals.offer(requests(1))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* signals.count("stopped"), 1)
      assert.strictEqual(yield* signals.count("failed"), 0)
      assert.deepStrictEqual(signals.warnings(), [])
    })
  )

  it.effect("does not repeat what the recorder refuses for good (R10)", () =>
    Effect.gen(function* () {
      const signals = yield* startSignals(() => Effect.fail(refused))
      yield* signals.offer(requests(1))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(signals.asked.length, 1)
      assert.strictEqual(yield* signals.count("failed"), 1)
      assert.strictEqual(signals.warnings().length, 1)
    })
  )

  it.effect("goes on after defects and inner interruptions of the recorder's layer (R10)", () =>
    Effect.gen(function* () {
      const signals = yield* startSignals(({ recordingId }) => {
        const n = Number(recordingId.slice(-2))
        if (n >= 12) return Effect.succeed("stopped")
        if (n % 3 === 0) throw new Error("thrown by the recorder")
        return n % 3 === 1 ? Effect.die(new Error("died in the recorder")) : Effect.interrupt
      })
      yield* signals.offer(requests(20))
      yield* signals.reached("failed", 12)
      yield* signals.reached("stopped", 8)
      assert.strictEqual(yield* signals.count("failed"), 12)
      assert.strictEqual(yield* signals.count("stopped"), 8)
      assert.strictEqual(signals.warnings().length, 12)
      assert.isTrue(signals.warnings().some(({ cause }) => cause.includes("thrown by the recorder")))
      yield* signals.offer(requests(1))
      yield* signals.reached("failed", 13)
      assert.strictEqual(yield* signals.count("failed"), 13)
    })
  )

  it.effect("does not queue a recording again that is queued or under way (R10)", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const signals = yield* startSignals(() => Effect.as(Deferred.await(gate), "stopped"))
      yield* signals.offer([...requests(5), ...requests(5)])
      yield* signals.askedFor(4)
      yield* signals.offer(requests(5))
      yield* Deferred.succeed(gate, undefined)
      yield* signals.reached("stopped", 5)
      assert.strictEqual(signals.asked.length, 5)
      assert.strictEqual(yield* signals.count("stopped"), 5)
      assert.strictEqual(yield* signals.count("dropped"), 0)
      yield* signals.offer(requests(5))
      yield* signals.reached("stopped", 10)
      assert.strictEqual(yield* signals.count("stopped"), 10)
    })
  )

  it.effect("drops and counts what does not fit, with one warning for each burst (R10)", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const signals = yield* startSignals(() => Effect.as(Deferred.await(gate), "stopped"))
      yield* signals.offer(requests(4))
      yield* signals.askedFor(4)
      yield* signals.offer(requests(1010, 4)).pipe(Effect.annotateLogs({ correlationId: "run-1" }))
      yield* signals.offer(requests(7, 2000))
      yield* signals.offer(requests(4))
      yield* signals.offer(requests(7, 3000))
      assert.strictEqual(yield* signals.count("dropped"), 24)
      assert.deepStrictEqual(
        signals.warnings().map(({ message, annotations }) => [message, annotations]),
        [["recorder signals dropped: the queue is full or closed", { correlationId: "run-1", dropped: 10 }]]
      )
      yield* Deferred.succeed(gate, undefined)
      yield* signals.reached("stopped", 1004)
      assert.strictEqual(yield* signals.count("stopped"), 1004)
      yield* signals.offer(requests(1, 2000))
      yield* signals.offer(requests(1000, 4000))
      assert.strictEqual(yield* signals.count("dropped"), 25)
      assert.strictEqual(signals.warnings().length, 2)
    })
  )

  it.effect("gives each signal a root span linked to the cycle's, with the cycle's annotations (M)", () =>
    Effect.gen(function* () {
      const spans: Array<Tracer.Span> = []
      const tracer = Tracer.make({
        span: (options) => {
          const span = new Tracer.NativeSpan(options)
          spans.push(span)
          return span
        }
      })
      yield* Effect.gen(function* () {
        const signals = yield* startSignals(() => Effect.fail(refused))
        yield* signals
          .offer(requests(1))
          .pipe(Effect.annotateSpans({ correlationId: "run-1" }), Effect.withSpan("reaper.cycle"))
        yield* signals.reached("failed", 1)
      }).pipe(Effect.withTracer(tracer), Effect.withSpan("process"))
      const cycle = spans.find(({ name }) => name === "reaper.cycle")
      const signal = spans.find(({ name }) => name === "recorder.requestStop")
      assert.isDefined(signal)
      assert.isTrue(signal.parent._tag === "None")
      assert.deepStrictEqual(
        signal.links.map(({ span }) => span.spanId),
        [cycle?.spanId]
      )
      const { recordingId, conferenceId } = requestFor(0)
      assert.deepStrictEqual(Object.fromEntries(signal.attributes), {
        correlationId: "run-1",
        recordingId,
        conferenceId
      })
      assert.isTrue(signal.status._tag === "Ended" && Exit.isFailure(signal.status.exit))
    })
  )
})
