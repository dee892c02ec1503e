/** Infrastructure failures and defects at every operation of every phase, on the in-memory database (T1, T6, T7). */
import { assert, layer, type Vitest } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import * as Phase from "../../src/domain/Phase.ts"
import * as Cycle from "../../src/program/Cycle.ts"
import type { StoreUnavailable } from "../../src/services/StoreError.ts"
import { program } from "../contract/CycleFixtures.ts"
import { closedPhases, fromDueRooms, names } from "../contract/FaultFixtures.ts"
import { Harness } from "../contract/Harness.ts"
import { observed } from "../contract/Observed.ts"
import { type Operation, unavailable } from "../fakes/Faults.ts"
import { MemoryDatabase } from "../fakes/MemoryDatabase.ts"
import * as MemoryLayers from "../fakes/MemoryLayers.ts"
import { RecorderControl } from "../fakes/MemoryRecorder.ts"

type Memory = Layer.Success<ReturnType<typeof program<Layer.Success<typeof MemoryLayers.layer>, never>>>
type It = Vitest.MethodsNonLive<Memory>

/** What a phase asks of the database inside its transaction, and at which use it is this phase's turn. */
const inBatch: ReadonlyArray<Operation> = [
  "begin",
  "claim",
  "countSkippedLocked",
  "details",
  "apply",
  "append",
  "appendRealtime",
  "appendClosings",
  "commit"
]

const useOf = (operation: Operation, phase: number): number => {
  if (operation !== "details") return phase + 1
  // A failed provision asks for the recordings only after its commit.
  return [1, 0, 3][phase] ?? 0
}

/** Runs `effect` at the nth use of the operation only. */
const atUse = (operation: Operation, nth: number, effect: Effect.Effect<void, StoreUnavailable>) =>
  Effect.flatMap(MemoryDatabase, ({ faults }) => {
    let uses = 0
    const fault = Effect.suspend(() => (++uses === nth ? effect : Effect.void))
    return faults.before(operation, fault, Number.POSITIVE_INFINITY)
  })

const others = (failed: Phase.Phase) => Phase.all.filter((phase) => phase !== failed).map((phase) => phase.name)

layer(program(MemoryLayers.layer))("Failures of the infrastructure, in memory", (it) => {
  everyOperation(it)
  commits(it)
  outages(it)
})

const everyOperation = (it: It): void => {
  for (const [index, phase] of Phase.all.entries()) {
    for (const operation of inBatch) {
      const nth = useOf(operation, index)
      if (nth === 0) continue
      it.effect(`rolls ${phase.name} back alone when ${operation} fails, the next cycle closes the rest (T6)`, () =>
        Effect.gen(function* () {
          yield* atUse(operation, nth, Effect.fail(unavailable(operation)))
          const cycle = yield* observed(Cycle.run)
          assert.deepStrictEqual(yield* closedPhases, others(phase))
          assert.strictEqual(cycle.result.outcome, "failed")
          assert.match(cycle.result.error ?? "", new RegExp(`^${phase.name}: `))
          assert.strictEqual(cycle.moved("errors_total"), 1)
          for (const one of Phase.all) {
            const errors = cycle.moved(`phase_errors_total{phase="${one.name}"}`)
            assert.strictEqual(errors, one === phase ? 1 : 0, one.name)
            assert.strictEqual(cycle.moved(`items_total{outcome="${one.outcome}"}`), one === phase ? 0 : 1, one.name)
          }
          const failed = cycle.saying("phase failed")
          assert.deepStrictEqual(
            failed.map((line) => [line.level, line.annotations.phase, line.cause.includes("08006")]),
            [["Error", phase.name, true]]
          )
          assert.strictEqual((yield* Cycle.run).outcome, "completed")
          assert.deepStrictEqual(yield* closedPhases, names)
        }).pipe(fromDueRooms)
      )
    }

    it.effect(`logs and counts a defect in ${phase.name}, and the other phases run (T6)`, () =>
      Effect.gen(function* () {
        yield* atUse("apply", index + 1, Effect.die(new Error("a bug of ours")))
        const cycle = yield* observed(Cycle.run)
        assert.deepStrictEqual(yield* closedPhases, others(phase))
        assert.deepStrictEqual([cycle.result.outcome, cycle.moved("errors_total")], ["failed", 1])
        const [line] = cycle.saying("phase failed")
        assert.include(line?.cause, "a bug of ours")
      }).pipe(fromDueRooms)
    )
  }

  it.effect("rolls back also when poison cannot be recorded (T1)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* harness.refuse(
        "apply",
        [(yield* harness.sessions)[0]?.id].flatMap((id) => id ?? [])
      )
      yield* atUse("recordPoison", 1, Effect.fail(unavailable("recordPoison")))
      const cycle = yield* observed(Cycle.run)
      assert.strictEqual(cycle.saying("item failed").length, 0)
      assert.deepStrictEqual([cycle.result.poisonCount, cycle.moved("errors_total")], [0, 1])
      assert.deepStrictEqual(yield* harness.poison, [])
    }).pipe(fromDueRooms)
  )
}

const commits = (it: It): void => {
  it.effect("tells nobody of a batch whose commit failed: no log, no count, no recorder signal (T6, R10)", () =>
    Effect.gen(function* () {
      const { faults } = yield* MemoryDatabase
      const recorder = yield* RecorderControl
      const asked = (yield* recorder.requests).length
      yield* faults.before("commit", Effect.fail(unavailable("commit")), 9)
      const cycles = yield* observed(Effect.replicateEffect(Cycle.run, 3))
      assert.deepStrictEqual(yield* closedPhases, [])
      assert.deepStrictEqual(cycles.saying("conference reaped"), [])
      assert.strictEqual(cycles.moved('items_total{outcome="empty_timeout"}'), 0)
      assert.strictEqual(cycles.moved('lateness_seconds{phase="empty-room"}'), 0)
      const healed = yield* observed(Cycle.run)
      assert.strictEqual(healed.saying("conference reaped").length, 3)
      assert.deepStrictEqual(yield* closedPhases, names)
      while ((yield* recorder.requests).length < asked + 3) yield* Effect.yieldNow
      assert.strictEqual((yield* recorder.requests).length, asked + 3, "once for each, after the commit")
    }).pipe(fromDueRooms)
  )

  it.effect("sends no second event when the answer to a commit is lost (W6, T6)", () =>
    Effect.gen(function* () {
      const { faults } = yield* MemoryDatabase
      yield* faults.before("commitAnswer", Effect.fail(unavailable("commit")), 3)
      const cycle = yield* observed(Cycle.run)
      assert.deepStrictEqual([cycle.result.outcome, cycle.moved("errors_total")], ["failed", 3])
      assert.deepStrictEqual(yield* closedPhases, names)
      const next = yield* observed(Cycle.run)
      assert.strictEqual(next.result.outcome, "completed")
      assert.deepStrictEqual(yield* closedPhases, names)
      assert.deepStrictEqual(next.saying("conference reaped"), [])
    }).pipe(fromDueRooms)
  )
}

const outages = (it: It): void => {
  for (const phase of Phase.all) {
    it.effect(`stops early and counts one error when the database goes away in ${phase.name} (T6)`, () =>
      Effect.gen(function* () {
        const { faults } = yield* MemoryDatabase
        const away = Effect.andThen(faults.outage, Effect.fail(unavailable("claim")))
        yield* atUse("claim", Phase.all.indexOf(phase) + 1, away)
        const cycle = yield* observed(Cycle.run)
        assert.deepStrictEqual([cycle.result.outcome, cycle.moved("errors_total")], ["failed", 1])
        assert.deepStrictEqual(
          yield* closedPhases,
          Phase.all.slice(0, Phase.all.indexOf(phase)).map(({ name }) => name)
        )
        yield* faults.clear
        assert.strictEqual((yield* Cycle.run).outcome, "completed")
        assert.deepStrictEqual(yield* closedPhases, names)
      }).pipe(fromDueRooms)
    )
  }

  it.effect(
    "counts one error and no run when the database is away at the tick, and reports no old backlog (T6, M)",
    () =>
      Effect.gen(function* () {
        const { faults } = yield* MemoryDatabase
        yield* faults.failNext("claim")
        const before = yield* observed(Cycle.run)
        assert.strictEqual(before.value("active_backlog"), 1)
        yield* faults.outage
        const cycle = yield* observed(Cycle.run)
        assert.deepStrictEqual(
          [cycle.result.outcome, cycle.moved("errors_total"), cycle.moved("run_total")],
          ["failed", 1, 0]
        )
        assert.strictEqual(cycle.value("active_backlog"), 0)
        yield* faults.clear
        assert.strictEqual((yield* Cycle.run).outcome, "completed")
      }).pipe(fromDueRooms)
  )

  it.effect("counts one error when the server restarts between two phases: the lock is gone with it (T6, L3)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      yield* atUse("apply", 1, harness.killConnections)
      const cycle = yield* observed(Cycle.run)
      assert.deepStrictEqual([cycle.result.outcome, cycle.moved("errors_total")], ["failed", 1])
      assert.deepStrictEqual(yield* closedPhases, [])
      assert.strictEqual((yield* Cycle.run).outcome, "completed")
    }).pipe(fromDueRooms)
  )

  it.effect("keeps a failed provision whose recordings cannot be looked up, with a warning (R10, T6)", () =>
    Effect.gen(function* () {
      yield* atUse("details", 2, Effect.fail(unavailable("details")))
      const failing = yield* observed(Cycle.run)
      assert.deepStrictEqual([failing.result.outcome, failing.moved("errors_total")], ["completed", 0])
      assert.strictEqual(
        failing.lines.filter((line) => line.level === "Warn" && /no stop signal/.test(String(line.message))).length,
        1
      )
    }).pipe(fromDueRooms)
  )

  it.effect("does not call a committed provision rolled back when a bug hits the look-up of its recordings (R10)", () =>
    Effect.gen(function* () {
      yield* atUse("details", 2, Effect.die("a bug of ours"))
      const cycle = yield* observed(Cycle.run)
      assert.deepStrictEqual(cycle.saying("phase failed"), [])
      assert.deepStrictEqual(yield* closedPhases, names)
    }).pipe(fromDueRooms)
  )

  it.effect("completes when gauges and history cannot be written, with a warning each (T6)", () =>
    Effect.gen(function* () {
      const { faults } = yield* MemoryDatabase
      yield* faults.failNext("backlog")
      yield* faults.before("recordRun", Effect.die("a bug of ours"))
      const cycle = yield* observed(Cycle.run)
      assert.deepStrictEqual([cycle.result.outcome, cycle.moved("errors_total")], ["completed", 0])
      assert.strictEqual(cycle.lines.filter((line) => /was not possible/.test(String(line.message))).length, 2)
    }).pipe(fromDueRooms)
  )
}
