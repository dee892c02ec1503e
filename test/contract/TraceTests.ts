/** What a cycle says in logs and spans: enough to follow one closed room from its run's id (W7, M). */
import { assert, type Vitest } from "@effect/vitest"
import { Effect, Option, type Tracer } from "effect"
import { conferenceId } from "../support/Sessions.ts"
import type { Program } from "./CycleFixtures.ts"
import { closed, dueAt, ends, facts, itemOf, spansOf } from "./EvidenceFixtures.ts"

export const traceTests = (it: Vitest.MethodsNonLive<Program>): void => {
  logs(it)
  spans(it)
}

const logs = (it: Vitest.MethodsNonLive<Program>): void => {
  it.effect("logs one line for each closed room that tells alone why it was closed (W7, M)", () =>
    closed((cycle) =>
      Effect.sync(() => {
        assert.deepStrictEqual(
          cycle.saying("conference reaped").map((line) => [line.level, line.annotations]),
          ends.map((end, i) => {
            return [
              end.status === "Failed" ? "Warn" : "Info",
              {
                correlationId: cycle.result.jobRunId,
                conferenceId: conferenceId(i + 1),
                chatId: `c4a70000-0000-4000-8000-00000000000${i + 1}`,
                dealId: `dea10000-0000-4000-8000-00000000000${i + 1}`,
                ...end,
                ...(end.status === "Failed" ? {} : { durationSeconds: i === 0 ? 7199 : 14401 }),
                endedAt: "2026-03-01T12:00:00.123Z",
                dueAt: dueAt[i],
                ...facts[i]
              }
            ]
          })
        )
      })
    )
  )

  it.effect("logs start, batches and end of a cycle, all with the run's id (M)", () =>
    closed((cycle) =>
      Effect.sync(() => {
        const { jobRunId: id, durationMs } = cycle.result
        for (const line of cycle.lines) assert.strictEqual(line.annotations.correlationId, id, String(line.message))
        const [begun] = cycle.saying("cycle started")
        assert.deepStrictEqual(begun?.annotations, {
          correlationId: id,
          jobRunId: id,
          asOf: "2026-03-01T12:00:00.123Z"
        })
        assert.deepStrictEqual(
          cycle.saying("batch selected").map(({ annotations: { phase, count } }) => [phase, count]),
          ends.map(({ phase }) => [phase, 1])
        )
        const [done, ...more] = cycle.saying("cycle completed")
        assert.deepStrictEqual(more, [])
        assert.include(done?.annotations, {
          emptyTimeoutCount: 1,
          provisionFailedCount: 1,
          staleTimeoutCount: 1,
          skippedLockedCount: 0,
          poisonCount: 0,
          durationMs,
          outcome: "completed"
        })
      })
    )
  )
}

const spans = (it: Vitest.MethodsNonLive<Program>): void => {
  it.effect("traces a cycle of batches of items, all with the run's id (M)", () =>
    closed((cycle) =>
      Effect.sync(() => {
        const [root, ...others] = spansOf(cycle.spans, "reaper.cycle")
        assert.deepStrictEqual(others, [])
        assert.isTrue(root !== undefined && Option.isNone(root.parent))
        for (const span of cycle.spans.filter((one) => one.traceId === root?.traceId)) {
          assert.strictEqual(span.attributes.get("correlationId"), cycle.result.jobRunId, span.name)
        }
        const batches = spansOf(cycle.spans, "reaper.batch")
        assert.deepStrictEqual(
          batches.map((span) => [span.attributes.get("phase"), Option.getOrUndefined(span.parent)?.spanId]),
          ends.map(({ phase }) => [phase, root?.spanId])
        )
        for (const [i, { phase }] of ends.entries()) {
          const item = itemOf(cycle.spans, i + 1)
          assert.strictEqual(item?.attributes.get("phase"), phase)
          assert.strictEqual(item?.attributes.get("dealTenantId"), `7e000000-0000-4000-8000-00000000000${i + 1}`)
          assert.isTrue(item?.traceId === root?.traceId && ancestors(item).includes(batches[i]?.spanId))
        }
        assert.strictEqual(spansOf(cycle.spans, "reaper.item").length, 3)
      })
    )
  )
}

const ancestors = (span: Tracer.AnySpan | undefined): ReadonlyArray<string | undefined> =>
  span?._tag === "Span" && Option.isSome(span.parent) ? [span.parent.value.spanId, ...ancestors(span.parent.value)] : []
