/**
 * What a messenger's client does while the database is away: it repeats the command with back-off for about 13 s, and
 * gives up then. An outage is logged once when it begins and once when it is over; every repeat is counted.
 */
import { Effect, Option, Ref, Schedule } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Answer } from "./MessengerWrites.ts"

interface Delivery {
  /** None: given up, nobody knows whether the command was carried out. */
  readonly answer: Option.Option<boolean>
  /** Failed attempts before the answer. After one, the command may have been carried out unseen. */
  readonly failures: number
}

export interface Deliveries {
  /** Commands answered or given up. */
  readonly commands: number
  /** Attempts that failed, repeated or not. */
  readonly failedAttempts: number
  /** Commands given up. */
  readonly lost: number
}

export interface PatientClient {
  readonly deliver: (command: Answer) => Effect.Effect<Delivery>
  /** All deliveries so far. */
  readonly deliveries: Effect.Effect<Deliveries>
}

const backOff = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("2 seconds")]).pipe(
  Schedule.upTo({ times: 10 })
)

const sqlState = (error: SqlError): string => {
  const cause: unknown = error.reason.cause
  return typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : ""
}

// Repeating does not mend wrong data (22, 23), a wrong statement or missing rights (42), or refused credentials (28).
const isWorthRepeating = (error: SqlError): boolean => !/^(22|23|28|42)/.test(sqlState(error))

const describe = (error: SqlError): string => {
  const cause: unknown = error.reason.cause
  return cause instanceof Error ? `${cause.message} ${sqlState(error)}`.trim() : error.message
}

/** One for all lives of a run, so that they log an outage together. */
export const make: Effect.Effect<PatientClient> = Effect.gen(function* () {
  const isAway = yield* Ref.make(false)
  const deliveries = yield* Ref.make<Deliveries>({ commands: 0, failedAttempts: 0, lost: 0 })
  const count = (more: Partial<Deliveries>) =>
    Ref.update(deliveries, (sum) => ({
      commands: sum.commands + (more.commands ?? 0),
      failedAttempts: sum.failedAttempts + (more.failedAttempts ?? 0),
      lost: sum.lost + (more.lost ?? 0)
    }))

  const noticed = (error: SqlError) =>
    Effect.gen(function* () {
      yield* count({ failedAttempts: 1 })
      const wasAway = yield* Ref.getAndSet(isAway, true)
      if (!wasAway) yield* Effect.logWarning("a command failed", { reason: describe(error) })
    })
  const answered = Effect.gen(function* () {
    const wasAway = yield* Ref.getAndSet(isAway, false)
    if (wasAway) yield* Effect.logInfo("commands are answered again")
  })

  const deliver = (command: Answer): Effect.Effect<Delivery> =>
    Effect.gen(function* () {
      const failures = yield* Ref.make(0)
      const answer = yield* command.pipe(
        Effect.tapError((error) =>
          Effect.andThen(
            Ref.update(failures, (n) => n + 1),
            noticed(error)
          )
        ),
        Effect.retry({ schedule: backOff, while: isWorthRepeating }),
        Effect.tap(answered),
        Effect.option
      )
      yield* count({ commands: 1, lost: Option.isNone(answer) ? 1 : 0 })
      return { answer, failures: yield* Ref.get(failures) }
    })

  return { deliver, deliveries: Ref.get(deliveries) }
})
