/** The Prometheus exposition (M): exact names, all of it at 0 from the first scrape, and a fixed number of series. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"
import * as Cycle from "../../src/program/Cycle.ts"
import * as Metrics from "../../src/program/Metrics.ts"
import { ReaperOptions } from "../../src/services/ReaperOptions.ts"
import { options, program } from "../contract/CycleFixtures.ts"
import { Harness } from "../contract/Harness.ts"
import { start, Timeline } from "../fakes/ManualCycleClock.ts"
import { MemoryDatabase } from "../fakes/MemoryDatabase.ts"
import * as MemoryLayers from "../fakes/MemoryLayers.ts"
import {
  conferenceId,
  before as earlier,
  emptySession,
  microsecondsAfter,
  provisioningSession
} from "../support/Sessions.ts"

const fresh = () =>
  program(MemoryLayers.layer).pipe(Layer.provideMerge(Layer.succeed(Metric.MetricRegistry, new Map())))

const phases = ["empty-room", "provision-timeout", "stale-live"]
const byPhase = (name: string) => phases.map((phase) => `${name}{phase="${phase}"}`)

/** Every sample but the buckets. */
const samples = Effect.map(PrometheusMetrics.format(), (text) => {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#") && !line.includes("_bucket"))
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))])
  )
})

const expected = [
  "run_total",
  "skip_locked_total",
  "errors_total",
  "lock_busy_total",
  "refused_total",
  "active_backlog",
  "poison_items",
  "clock_skew_seconds",
  "cycle_duration_seconds_sum",
  "cycle_duration_seconds_count",
  ...["empty_timeout", "provision_failed", "stale_timeout"].map((outcome) => `items_total{outcome="${outcome}"}`),
  ...byPhase("phase_errors_total"),
  ...["lateness_seconds", "commit_delay_seconds"].flatMap((name) => [
    ...byPhase(`${name}_sum`),
    ...byPhase(`${name}_count`)
  ]),
  ...["stopped", "not_configured", "disabled", "failed", "dropped"].map(
    (result) => `recorder_signals_total{result="${result}"}`
  )
].map((name) => `messenger_conf_reaper_${name}`)

describe("Metrics", () => {
  it.effect("are all there at 0 before the first cycle, under exactly these names (M)", () =>
    Effect.gen(function* () {
      const seen = yield* samples
      assert.deepStrictEqual([...seen.keys()].toSorted(), expected.toSorted())
      assert.deepStrictEqual([...new Set(seen.values())], [0])
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("declare their types, and no name twice (M)", () =>
    Effect.gen(function* () {
      const types = (yield* PrometheusMetrics.format()).split("\n").filter((line) => line.startsWith("# TYPE"))
      assert.strictEqual(new Set(types).size, types.length)
      for (const line of types) {
        const [, , name = "", type] = line.split(" ")
        const isHistogram = ["cycle_duration", "lateness", "commit_delay"].some((part) => name.includes(part))
        assert.strictEqual(type, isHistogram ? "histogram" : name.endsWith("_total") ? "counter" : "gauge", line)
      }
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("count one run after one empty cycle (M)", () =>
    Effect.gen(function* () {
      yield* Cycle.run
      const seen = yield* samples
      assert.strictEqual(seen.get("messenger_conf_reaper_run_total"), 1)
      assert.strictEqual(seen.get("messenger_conf_reaper_cycle_duration_seconds_count"), 1)
      assert.strictEqual(seen.get("messenger_conf_reaper_errors_total"), 0)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("have a lateness bucket that ends at the polling interval: what is in it met the SLO (S1)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const due = earlier(start, options.emptyRoomGrace)
      const inTime = earlier(due, options.pollingInterval)
      yield* harness.insertSessions([emptySession(1, inTime), emptySession(2, microsecondsAfter(inTime, -1n))])
      yield* Cycle.run
      const text = yield* PrometheusMetrics.format()
      const bucket = (edge: string) =>
        text
          .split("\n")
          .find((line) => line.includes("lateness") && line.includes("empty-room") && line.includes(`le="${edge}"`))
      assert.match(bucket("30") ?? "", / 1$/)
      assert.match(bucket("37.5") ?? "", / 2$/)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("tell from AsOf to the commit, in seconds and never below 0 (M)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const timeline = yield* Timeline
      const { faults } = yield* MemoryDatabase
      const grace = earlier(start, options.emptyRoomGrace)
      const delay = Effect.map(samples, (seen) =>
        seen.get('messenger_conf_reaper_commit_delay_seconds_sum{phase="empty-room"}')
      )
      yield* harness.insertSessions([emptySession(1, grace)])
      yield* faults.before("commit", timeline.advance("1.5 seconds"))
      yield* Cycle.run
      assert.strictEqual(yield* delay, 1.5)
      yield* harness.insertSessions([emptySession(2, grace)])
      yield* faults.before("commit", timeline.advance("-1.5 seconds"))
      yield* Cycle.run
      assert.strictEqual(yield* delay, 1.5)
    }).pipe(Effect.provide(fresh()))
  )

  it.effect("count the due sessions that others have locked (M)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([1, 2, 3, 4].map((n) => emptySession(n, earlier(start, "1 hour"))))
      yield* harness.insertSessions([provisioningSession(5, earlier(start, "1 hour"))])
      const other = yield* harness.otherSide
      yield* Effect.forEach([1, 2, 5], (n) => other.lockRow(conferenceId(n)))
      const summary = yield* Cycle.run
      assert.deepStrictEqual([summary.emptyTimeoutCount, summary.skippedLockedCount], [2, 3])
      assert.strictEqual((yield* samples).get("messenger_conf_reaper_skip_locked_total"), 3)
      assert.strictEqual((yield* samples).get("messenger_conf_reaper_active_backlog"), 3)
    }).pipe(Effect.scoped, Effect.provide(fresh()))
  )

  it.effect("have no more series after a thousand closings over hundreds of tenants, some refused (M)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const rooms = Array.from({ length: 1000 }, (_, n) => emptySession(n, earlier(start, "1 hour")))
      yield* harness.insertSessions(rooms)
      yield* harness.refuse("append", [conferenceId(3), conferenceId(500)])
      const names = [...(yield* samples).keys()]
      const summary = yield* Cycle.run
      assert.deepStrictEqual([summary.emptyTimeoutCount, summary.poisonCount], [998, 2])
      assert.strictEqual(new Set(rooms.map((room) => room.tenantId)).size, 1000)
      assert.deepStrictEqual([...(yield* samples).keys()], names)
    }).pipe(Effect.provideService(ReaperOptions, { ...options, batchSize: 1000 }), Effect.provide(fresh()))
  )

  it.effect("have edges that follow a polling interval of another length (S1)", () =>
    Effect.gen(function* () {
      const text = yield* PrometheusMetrics.format()
      assert.include(text, 'messenger_conf_reaper_lateness_seconds_bucket{phase="empty-room",le="7"}')
    }).pipe(
      Effect.provide(
        Metrics.layer.pipe(
          Layer.provide(Layer.succeed(ReaperOptions, { ...options, pollingInterval: Duration.seconds(7) })),
          Layer.provideMerge(Layer.succeed(Metric.MetricRegistry, new Map()))
        )
      )
    )
  )
})
