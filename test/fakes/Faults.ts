/**
 * What a test makes the in-memory database do wrong: any effect before a named operation (a failure, a defect, a pause
 * on the virtual clock, a handshake), and rows that are refused as by a constraint or trigger.
 */
import { Effect } from "effect"
import type { ConferenceId } from "../../src/domain/ConferenceSession.ts"
import { RowRefused, StoreUnavailable } from "../../src/services/StoreError.ts"

/** `commitAnswer` is the moment after the commit took effect and before its answer arrives. */
export const operations = [
  "begin",
  "claim",
  "countSkippedLocked",
  "details",
  "apply",
  "append",
  "appendRealtime",
  "appendClosings",
  "recordPoison",
  "commit",
  "commitAnswer",
  "backlog",
  "recordRun",
  "prune",
  "lock",
  "confirm",
  "ping",
  "claimPending",
  "markDelivered",
  "recordFailures",
  "pruneDelivered",
  "outboxStatus",
  "expire"
] as const
export type Operation = (typeof operations)[number]

/** Where a row is refused; `deferred` only when the constraints are checked at the end. */
export type RefusalPoint = "apply" | "append" | "appendRealtime" | "appendClosings" | "deferred"

export const unavailable = (operation: string, reason = "connection lost (SQLSTATE 08006)"): StoreUnavailable =>
  new StoreUnavailable({ operation, reason, isRetryable: true })

interface Planned {
  readonly effect: Effect.Effect<void, StoreUnavailable>
  left: number
}

export const makeFaults = () => {
  const planned = new Map<Operation, Planned>()
  const refused = new Map<RefusalPoint, Map<ConferenceId, string>>()

  const before = (operation: Operation, effect: Effect.Effect<void, StoreUnavailable>, times = 1) =>
    Effect.sync(() => {
      planned.set(operation, { effect, left: times })
    })

  return {
    /** Runs `effect` before the next `times` uses of the operation, in the fiber that uses it. */
    before,
    failNext: (operation: Operation, error: StoreUnavailable = unavailable(operation)) =>
      before(operation, Effect.fail(error)),
    /** Every operation fails until `clear`: the database is away. */
    outage: Effect.forEach(operations, (name) => before(name, Effect.fail(unavailable(name)), Infinity), {
      discard: true
    }),
    /** Refuses the rows of these conferences at one point, until `clear`. */
    refuse: (point: RefusalPoint, ids: ReadonlyArray<ConferenceId>, code = "23514") =>
      Effect.sync(() => {
        refused.set(point, new Map([...(refused.get(point) ?? []), ...ids.map((id) => [id, code] as const)]))
      }),
    clear: Effect.sync(() => {
      planned.clear()
      refused.clear()
    }),
    /** For the fakes: what was planned for this use of the operation. */
    hit: (operation: Operation): Effect.Effect<void, StoreUnavailable> =>
      Effect.suspend(() => {
        const fault = planned.get(operation)
        if (fault === undefined || fault.left <= 0) return Effect.void
        fault.left -= 1
        return fault.effect
      }),
    /** For the fakes: the refusal that one of these rows meets. */
    check: (point: RefusalPoint, ids: Iterable<ConferenceId>): Effect.Effect<void, RowRefused> =>
      Effect.suspend(() => {
        for (const id of ids) {
          const code = refused.get(point)?.get(id)
          if (code !== undefined)
            return Effect.fail(
              new RowRefused({ code, reason: `${point}: refused for ${id}`, isCertain: code.startsWith("23") })
            )
        }
        return Effect.void
      })
  }
}

export type Faults = ReturnType<typeof makeFaults>
