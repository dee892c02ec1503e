/**
 * What an outbox needs beside delivery, also while nothing is or can be delivered: gauges that are fresh, and rows that
 * are removed when their time is over. No lock: each instance may do it.
 */
import { Duration, Effect } from "effect"
import * as Instant from "../domain/Instant.ts"
import { CycleClock } from "../services/CycleClock.ts"
import type { DeliveryName } from "../services/DeliveryHealth.ts"
import { DeliveryOptions } from "../services/DeliveryOptions.ts"
import { Heartbeat } from "../services/Heartbeat.ts"
import type { Outbox } from "../services/Outbox.ts"
import type { StoreUnavailable } from "../services/StoreError.ts"
import * as DeliveryMetrics from "./DeliveryMetrics.ts"
import { inTime } from "./InTime.ts"
import * as Outage from "./Outage.ts"

/** The most that a lost wake-up costs; a poll is one small query, and a push that is a second late is still of use. */
export const pollFloor = Duration.seconds(1)

const pruneInterval = Duration.minutes(1)
// Small, so that no statement of it keeps others waiting.
const pruneBatch = 1000

const showLife = Effect.flatten(Heartbeat).pipe(Effect.andThen(Effect.sleep(pollFloor)), Effect.forever)

/** Lets time pass without looking dead. */
export const pause = (duration: Duration.Duration) => Effect.asVoid(Effect.timeoutOption(showLife, duration))

/** Repeats for ever. Nothing gets out, also when the logger is what is broken; and that is no hot loop. */
export const forEver = <E, R>(tick: Effect.Effect<void, E, R>): Effect.Effect<never, never, R> =>
  tick.pipe(
    Effect.catchCause(() => Effect.sleep(pollFloor)),
    Effect.forever
  )

/** Runs the work once per interval, at once at first; says once when the database fails it and once when it works again. */
const everyInterval = <R>(
  what: string,
  interval: Duration.Duration,
  work: Effect.Effect<void, StoreUnavailable, R>
) => {
  const outage = Outage.make(what, "")
  return work.pipe(
    Effect.andThen(outage.over),
    Effect.catchTag("StoreUnavailable", ({ message }) => outage.failed({ kind: "database", reason: message })),
    Effect.catchCause((cause) => Effect.ignoreCause(Effect.logError(`${what} failed`, cause))),
    Effect.withTracerEnabled(false),
    Effect.andThen(Effect.sleep(interval)),
    forEver
  )
}

const showStatus = Effect.fnUntraced(function* <Row>(name: DeliveryName, outbox: Outbox<Row>) {
  const status = yield* inTime("outbox status", outbox.status)
  yield* DeliveryMetrics.showStatus(name, status, yield* (yield* CycleClock).asOf)
})

const prune = Effect.fnUntraced(function* <Row>(outbox: Outbox<Row>) {
  const { retention } = yield* DeliveryOptions
  const before = Instant.minus(yield* (yield* CycleClock).asOf, retention)
  let removed: number
  do removed = yield* inTime("prune delivered", outbox.pruneDelivered(before, pruneBatch))
  while (removed === pruneBatch)
})

/** Never ends by itself. */
export const run = <Row>(name: DeliveryName, outbox: Outbox<Row>) =>
  Effect.all(
    [
      everyInterval(`${name} status`, pollFloor, showStatus(name, outbox)),
      everyInterval(`${name} retention`, pruneInterval, prune(outbox))
    ],
    { concurrency: "unbounded", discard: true }
  ).pipe(Effect.andThen(Effect.never))

/** What an outbox whose receiver is not configured needs: nothing else shows then that the process lives. */
export const runAlone = <Row>(name: DeliveryName, outbox: Outbox<Row>) =>
  Effect.all([run(name, outbox), showLife], { concurrency: "unbounded", discard: true })
