import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import { pauseAfter } from "../../src/domain/Poison.ts"

const pauses = (pollingInterval: Duration.Input, attempts: ReadonlyArray<number>) =>
  attempts.map((n) => Duration.toSeconds(pauseAfter(n, Duration.fromInputUnsafe(pollingInterval))))

describe("Poison.pauseAfter", () => {
  it("tries again on each of the next three cycles, then at doubling distance up to 15 minutes (T5)", () => {
    assert.deepStrictEqual(pauses("30 seconds", [1, 2, 3, 4, 5, 6, 7, 8, 9]), [0, 0, 0, 60, 120, 240, 480, 900, 900])
  })

  it("stays at 15 minutes however often it failed (T5)", () => {
    assert.deepStrictEqual(pauses("30 seconds", [100, 2_000_000]), [900, 900])
  })

  it("never waits longer than 15 minutes, not even for a long interval (T5)", () => {
    assert.deepStrictEqual(pauses("1 hour", [3, 4]), [0, 900])
  })
})
