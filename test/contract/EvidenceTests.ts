/** What one closed session of each phase leaves behind, field by field: event, push, evidence, history (W3, W7). */
import { assert, type Vitest } from "@effect/vitest"
import { Effect } from "effect"
import * as Cycle from "../../src/program/Cycle.ts"
import { ReaperOptions } from "../../src/services/ReaperOptions.ts"
import { start, Timeline } from "../fakes/ManualCycleClock.ts"
import { at, before, conferenceId, jobRunId, provisioningSession } from "../support/Sessions.ts"
import { fromTheStart, options, type Program } from "./CycleFixtures.ts"
import { closed, dueAt, ends, facts, itemOf, messageIds, payloads, traceparent } from "./EvidenceFixtures.ts"
import { Harness } from "./Harness.ts"

export const evidenceTests = (it: Vitest.MethodsNonLive<Program>): void => {
  events(it)
  evidence(it)
  history(it)
}

const withoutSignal = Effect.provideService(ReaperOptions, { ...options, provisionFailedSignal: false })

const events = (it: Vitest.MethodsNonLive<Program>): void => {
  it.effect("writes no push for a failed provision where that is turned off, evidence all the same (W2)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([provisioningSession(1, before(start, options.provisionTimeout))])
      assert.strictEqual((yield* Cycle.run).provisionFailedCount, 1)
      assert.deepStrictEqual([(yield* harness.realtime).length, (yield* harness.closings).length], [0, 1])
    }).pipe(withoutSignal, fromTheStart)
  )

  it.effect("writes exactly this event for each ended room, and none for a failed provision (W1, W2, W3)", () =>
    closed((cycle) =>
      Effect.gen(function* () {
        const messages = yield* (yield* Harness).outbox
        assert.deepStrictEqual(
          messages,
          [1, 3].map((n, i) => ({
            messageId: messageIds[i] ?? "",
            topic: "pin.messenger.conference-ended.v1",
            messageKey: `dea10000-0000-4000-8000-00000000000${n}`,
            eventType: "pin.messenger.conference-ended.v1",
            payload: payloads[i],
            headers: {
              "message-id": messageIds[i],
              "event-type": "pin.messenger.conference-ended.v1",
              "correlation-id": cycle.result.jobRunId,
              traceparent: traceparent(itemOf(cycle.spans, n)),
              "content-type": "application/json"
            },
            createdAt: start
          }))
        )
      })
    )
  )

  it.effect("writes exactly this push for each closed room (W1, W2)", () =>
    closed((cycle) =>
      Effect.gen(function* () {
        const signals = yield* (yield* Harness).realtime
        assert.deepStrictEqual(
          signals,
          ["Ended", "Failed", "Ended"].map((signal, i) => ({
            kind: "ConferenceEnded",
            targetKind: "ChatGroup",
            chatId: `c4a70000-0000-4000-8000-00000000000${i + 1}`,
            sessionKind: "Conference",
            sessionId: conferenceId(i + 1),
            signal,
            headers: {
              "correlation-id": cycle.result.jobRunId,
              traceparent: traceparent(itemOf(cycle.spans, i + 1))
            },
            createdAt: start
          }))
        )
      })
    )
  )
}

const evidence = (it: Vitest.MethodsNonLive<Program>): void => {
  it.effect("keeps the facts that decided, exact to the microsecond (W7)", () =>
    closed((cycle) =>
      Effect.gen(function* () {
        const closings = yield* (yield* Harness).closings
        assert.deepStrictEqual(
          closings,
          ends.map((end, i) => ({
            conferenceId: conferenceId(i + 1),
            ...end,
            asOf: start,
            dueAt: at(dueAt[i] ?? ""),
            jobRunId: cycle.result.jobRunId,
            messageId: [messageIds[0], null, messageIds[1]][i] ?? null,
            evidence: facts[i] ?? {}
          }))
        )
      })
    )
  )
}

const history = (it: Vitest.MethodsNonLive<Program>): void => {
  it.effect("keeps one row for each cycle, under the instance's name (W7)", () =>
    closed((cycle) =>
      Effect.gen(function* () {
        const harness = yield* Harness
        const timeline = yield* Timeline
        yield* timeline.advance("30 seconds")
        const second = yield* Cycle.run
        assert.deepStrictEqual(yield* harness.runs, [
          { ...second, instance: "test" },
          { ...cycle.result, instance: "test" }
        ])
      })
    )
  )

  it.effect("keeps the newest 10 000 runs (W7)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertRuns(10_000)
      const { jobRunId: newest } = yield* Cycle.run
      const runs = yield* harness.runs
      assert.strictEqual(runs.length, 10_000)
      assert.deepStrictEqual([runs[0]?.jobRunId, runs.at(-1)?.jobRunId], [newest, jobRunId(2)])
    }).pipe(fromTheStart)
  )

  it.effect("removes evidence once it is older than its retention, not at it (W7)", () =>
    closed(() =>
      Effect.gen(function* () {
        const harness = yield* Harness
        const timeline = yield* Timeline
        yield* timeline.advance(options.closingsRetention)
        yield* Cycle.run
        assert.strictEqual((yield* harness.closings).length, 3)
        yield* timeline.advance("1 micro")
        yield* Cycle.run
        assert.strictEqual((yield* harness.closings).length, 0)
        assert.strictEqual((yield* harness.outbox).length, 2, "the outbox has a retention of its own")
      })
    )
  )
}
