/** Poison does not starve the healthy, and is tried again at the distances that the specification names (T5). */
import { assert, type Vitest } from "@effect/vitest"
import { Duration, Effect } from "effect"
import * as Phase from "../../src/domain/Phase.ts"
import * as Cycle from "../../src/program/Cycle.ts"
import { ReaperOptions } from "../../src/services/ReaperOptions.ts"
import { start, Timeline } from "../fakes/ManualCycleClock.ts"
import {
  activeSession,
  before,
  conferenceId,
  emptySession,
  provisioningSession,
  type SessionRow
} from "../support/Sessions.ts"
import { fromTheStart, options, type Program } from "./CycleFixtures.ts"
import { Harness } from "./Harness.ts"
import { observed } from "./Observed.ts"

const build = {
  "empty-room": emptySession,
  "provision-timeout": provisioningSession,
  "stale-live": activeSession
}

/** Session number `n` of those that the phase finds, older the smaller the number. */
const due = (phase: Phase.Phase, n: number): SessionRow => {
  const age = Duration.sum(phase.window(options), Duration.seconds(1000 - n))
  return build[phase.name](n, before(start, age))
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

const small = Effect.provideService(ReaperOptions, { ...options, batchSize: 10 })

/** One cycle, and the time of the next one. */
const cycle = Effect.gen(function* () {
  const seen = yield* observed(Cycle.run)
  yield* (yield* Timeline).advance(options.pollingInterval)
  return seen
})

/** Runs cycles and gives the numbers of those in which a session was refused, the first one being 0. */
const refusedIn = (cycles: number) =>
  Effect.forEach(range(0, cycles - 1), (n) =>
    Effect.map(cycle, ({ result }) => (result.poisonCount > 0 ? [n] : []))
  ).pipe(Effect.map((numbers) => numbers.flat()))

/** `healthy` sessions stand behind the poison; poison is watched for `cycles`. */
export const poisonOrderTests = (it: Vitest.MethodsNonLive<Program>, healthy: number, cycles: number): void => {
  starvation(it, healthy)
  skippedLocked(it)
  retries(it, cycles)
}

const starvation = (it: Vitest.MethodsNonLive<Program>, healthy: number): void => {
  for (const phase of Phase.all) {
    it.effect(`closes all healthy sessions behind 15 poison ones with BatchSize 10, in ${phase.name} (T5)`, () =>
      Effect.gen(function* () {
        const harness = yield* Harness
        yield* harness.insertSessions(range(1, healthy + 15).map((n) => due(phase, n)))
        yield* harness.refuse("apply", range(1, 15).map(conferenceId))
        const open = Effect.map(harness.sessions, (rows) => rows.filter((row) => row.endedAt === null).length)
        for (const n of range(1, healthy / 10)) {
          const seen = yield* cycle
          assert.strictEqual(yield* open, healthy + 15 - 10 * n, `after cycle ${n}`)
          const failed = seen.saying("item failed").map((line) => line.annotations.conferenceId)
          assert.strictEqual(new Set(failed).size, failed.length, "each at most once a cycle")
        }
        // One more: the gauges are counted after the cycle, and now nothing but poison is left.
        const last = yield* cycle
        assert.deepStrictEqual([last.value("active_backlog"), last.value("poison_items")], [15, 15])
        assert.strictEqual(last.result.outcome, "completed")
      }).pipe(small, fromTheStart)
    )
  }

  it.effect("fills the batch with the healthy also when the guard refuses the poison (T5)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([
        ...range(1, 15).map((n) => ({ ...due(Phase.emptyRoom, n), startedAt: null })),
        ...range(16, 40).map((n) => due(Phase.emptyRoom, n))
      ])
      const first = yield* cycle
      assert.deepStrictEqual([first.result.emptyTimeoutCount, first.result.poisonCount], [10, 15])
      assert.deepStrictEqual((yield* harness.outbox).length, 10)
    }).pipe(small, fromTheStart)
  )
}

const skippedLocked = (it: Vitest.MethodsNonLive<Program>): void => {
  it.effect("does not take poison of an earlier phase for a mark of how far a full batch came (M)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([
        ...range(1, 30).map((n) => due(Phase.staleLive, n)),
        { ...due(Phase.emptyRoom, 900), startedAt: null },
        { ...due(Phase.staleLive, 901), activeParticipantCount: 0, startedAt: null }
      ])
      const seen = yield* cycle
      assert.strictEqual(seen.result.staleTimeoutCount, 10)
      assert.strictEqual(seen.result.skippedLockedCount, 0, "nobody has anything locked")
    }).pipe(small, fromTheStart)
  )

  it.effect("does not take poison that a full batch left for later for locked (M, T5)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions(range(1, 40).map((n) => due(Phase.emptyRoom, n)))
      yield* harness.refuse("apply", range(1, 3).map(conferenceId))
      const skipped = yield* Effect.forEach(range(1, 5), () =>
        Effect.map(cycle, ({ result }) => result.skippedLockedCount)
      )
      assert.deepStrictEqual(skipped, [0, 0, 0, 0, 0])
    }).pipe(small, fromTheStart)
  )
}

const retries = (it: Vitest.MethodsNonLive<Program>, cycles: number): void => {
  it.effect("tries poison in the next three cycles, then at doubling distance up to 15 minutes (T5)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([due(Phase.emptyRoom, 1)])
      yield* harness.refuse("apply", [conferenceId(1)])
      const expected = [0, 1, 2, 3, 5, 9, 17, 33, 63, 93].filter((n) => n < cycles)
      assert.deepStrictEqual(yield* refusedIn(cycles), expected)
      const [record] = yield* harness.poison
      assert.strictEqual(record?.attempts, expected.length)
      assert.strictEqual(record?.firstFailedAt, start)
    }).pipe(fromTheStart)
  )

  it.effect("tries poison at once when its row has changed, and the record goes with the closing (T5)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([{ ...due(Phase.emptyRoom, 1), mediaType: "Hologram" }])
      assert.deepStrictEqual(yield* refusedIn(5), [0, 1, 2, 3])
      yield* harness.updateSession(conferenceId(1), { mediaType: "Audio" })
      const seen = yield* cycle
      assert.deepStrictEqual([seen.result.emptyTimeoutCount, seen.value("poison_items")], [1, 0])
      assert.deepStrictEqual(yield* harness.poison, [])
    }).pipe(fromTheStart)
  )

  it.effect("lets the record go when somebody else ends the session (T5)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.insertSessions([{ ...due(Phase.emptyRoom, 1), startedAt: null }])
      yield* cycle
      yield* harness.updateSession(conferenceId(1), { status: "Ended", endReason: "Completed", endedAt: start })
      assert.strictEqual((yield* cycle).value("poison_items"), 0)
      assert.deepStrictEqual(yield* harness.poison, [])
    }).pipe(fromTheStart)
  )
}
