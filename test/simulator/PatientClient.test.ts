import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Logger, Option, Ref } from "effect"
import { ConnectionError, ConstraintError, SqlError } from "effect/sql/SqlError"
import { TestClock } from "effect/testing"
import * as PatientClient from "../../src/simulator/PatientClient.ts"

const away = new SqlError({ reason: new ConnectionError({ cause: new Error("connect ECONNREFUSED") }) })
const wrong = new SqlError({
  reason: new ConstraintError({ cause: Object.assign(new Error("null value"), { code: "23502" }) })
})

/** A command that fails `times` times and is then carried out; and how often it was tried. */
const failing = (times: number, error: SqlError) =>
  Effect.map(Ref.make(0), (tries) => ({
    tries,
    command: Ref.updateAndGet(tries, (n) => n + 1).pipe(
      Effect.flatMap((n) => (n <= times ? Effect.fail(error) : Effect.succeed(true)))
    )
  }))

const collectLogs = Effect.map(Ref.make<ReadonlyArray<string>>([]), (lines) => ({
  lines,
  layer: Logger.layer([
    Logger.make(({ message }) => {
      const [text] = Array.isArray(message) ? message : [message]
      Effect.runSync(Ref.update(lines, (all) => [...all, String(text)]))
    })
  ])
}))

describe("the patient client", () => {
  it.effect("repeats a command while the database is away, and logs the outage once for all lives", () =>
    Effect.gen(function* () {
      const logs = yield* collectLogs
      const client = yield* PatientClient.make
      const first = yield* failing(3, away)
      const second = yield* failing(3, away)
      const deliveries = yield* Effect.forEach([first, second], ({ command }) => client.deliver(command), {
        concurrency: 2
      }).pipe(Effect.provide(logs.layer), Effect.forkScoped({ startImmediately: true }))
      yield* TestClock.adjust("1 minute")
      expect(yield* Fiber.join(deliveries)).toEqual([
        { answer: Option.some(true), failures: 3 },
        { answer: Option.some(true), failures: 3 }
      ])
      expect(yield* client.deliveries).toEqual({ commands: 2, failedAttempts: 6, lost: 0 })
      expect(yield* Ref.get(logs.lines)).toEqual(["a command failed", "commands are answered again"])
    })
  )

  it.effect("gives a command up after eleven attempts, counted and without an answer", () =>
    Effect.gen(function* () {
      const client = yield* PatientClient.make
      const { command, tries } = yield* failing(100, away)
      const delivery = yield* Effect.forkScoped(client.deliver(command), { startImmediately: true })
      yield* TestClock.adjust("1 minute")
      expect(yield* Fiber.join(delivery)).toEqual({ answer: Option.none(), failures: 11 })
      expect(yield* Ref.get(tries)).toBe(11)
      expect(yield* client.deliveries).toEqual({ commands: 1, failedAttempts: 11, lost: 1 })
    })
  )

  it.effect("does not repeat what repeating cannot mend", () =>
    Effect.gen(function* () {
      const client = yield* PatientClient.make
      const { command, tries } = yield* failing(1, wrong)
      expect(yield* client.deliver(command)).toEqual({ answer: Option.none(), failures: 1 })
      expect(yield* Ref.get(tries)).toBe(1)
    })
  )
})
