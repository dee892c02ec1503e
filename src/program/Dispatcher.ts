/**
 * What both dispatchers share (X1, X2): a loop that cannot die. It waits for a wake-up or the poll, then drains its outbox
 * under a run lock of its own, until nothing is claimable or the receiver failed. Between sessions no lock is held, and
 * while a row is on its way no transaction is open but the lock's own idle one.
 *
 * Interrupted (SIGTERM) it claims nothing more, lets the running send settle and be recorded, and gives the lock back
 * last, so that a successor cannot overtake. A process that is ended sooner than that loses nothing: what was not marked
 * is sent again.
 */
import { Effect, Option } from "effect"
import { CycleClock } from "../services/CycleClock.ts"
import { DeliveryHealth, type DeliveryName } from "../services/DeliveryHealth.ts"
import type { DispatcherLock } from "../services/DispatcherLocks.ts"
import { Heartbeat } from "../services/Heartbeat.ts"
import type { Outbox } from "../services/Outbox.ts"
import type { LockLost } from "../services/RunLock.ts"
import type { StoreUnavailable } from "../services/StoreError.ts"
import * as BackOff from "./BackOff.ts"
import * as DeliveryMetrics from "./DeliveryMetrics.ts"
import { inTime } from "./InTime.ts"
import * as Outage from "./Outage.ts"
import * as Upkeep from "./Upkeep.ts"

/** How the receiver took one batch. */
export interface BatchEnd {
  /** Rows that it took. */
  readonly delivered: number
  /** Why the rest was not tried, where the receiver is to blame and not a row. */
  readonly trouble: Outage.Trouble | null
}

export interface Dispatch<Row, R> {
  readonly name: DeliveryName
  /** What people can do when the receiver does not let us in. */
  readonly remedy: string
  readonly outbox: Outbox<Row>
  readonly lock: DispatcherLock
  readonly batchSize: number
  /** Ends when rows may be waiting. */
  readonly awaitRows: Effect.Effect<void>
  /** Comes before the first claim of a session. */
  readonly prepare: Effect.Effect<void, StoreUnavailable, R>
  /** Sends the rows and records each result. `confirm` comes before each send. */
  readonly deliver: (
    rows: ReadonlyArray<Row>,
    confirm: Effect.Effect<void, LockLost>
  ) => Effect.Effect<BatchEnd, StoreUnavailable | LockLost, R>
}

/** How an attempt to deliver ended; `busy` when another instance delivers. */
type Ending = "drained" | "busy" | Outage.Trouble

interface Progress {
  readonly backOff: BackOff.BackOff
  readonly outage: Outage.Outage
}

const recovered = (name: DeliveryName, { backOff, outage }: Progress) =>
  Effect.gen(function* () {
    yield* backOff.reset
    yield* outage.over
    yield* (yield* DeliveryHealth).report(name, { status: "up" })
  })

const failed = (name: DeliveryName, { backOff, outage }: Progress, trouble: Outage.Trouble) =>
  Effect.gen(function* () {
    yield* outage.failed(trouble)
    if (trouble.kind !== "database") {
      yield* DeliveryMetrics.countFailure(name, trouble.kind)
      yield* (yield* DeliveryHealth).report(name, { status: "degraded", reason: trouble.reason })
    }
    return yield* backOff.next(trouble.kind)
  })

const claim = Effect.fnUntraced(function* <Row, R>({ outbox }: Dispatch<Row, R>, limit: number) {
  yield* yield* Heartbeat
  const asOf = yield* (yield* CycleClock).asOf
  return yield* inTime("claim pending", outbox.claimPending(asOf, limit))
})

/** One batch, a trace of its own: a long drain must not hang under one span that hardly ends. */
const deliverBatch = <Row, R>(dispatch: Dispatch<Row, R>, confirm: Effect.Effect<void, LockLost>) =>
  Effect.gen(function* () {
    yield* confirm
    const rows = yield* claim(dispatch, dispatch.batchSize)
    return rows.length === 0 ? null : yield* dispatch.deliver(rows, confirm)
  }).pipe(Effect.withSpan(`${dispatch.name}.batch`, { root: true }), Effect.withTracerEnabled(true))

const session = Effect.fnUntraced(function* <Row, R>(dispatch: Dispatch<Row, R>, progress: Progress) {
  const lock = yield* dispatch.lock.tryAcquire
  if (Option.isNone(lock)) return "busy" satisfies Ending
  yield* dispatch.prepare
  // One batch may take a slow receiver minutes, and that must not look dead.
  const confirm = Effect.andThen(Effect.flatten(Heartbeat), lock.value.confirm)
  while (true) {
    const end = yield* deliverBatch(dispatch, confirm)
    if (end === null) return "drained" satisfies Ending
    if (end.trouble === null) yield* recovered(dispatch.name, progress)
    else {
      // One partition that is away for long must not slow the others down to its own pace.
      if (end.delivered > 0) yield* progress.backOff.reset
      return end.trouble
    }
  }
}, Effect.scoped)

/** A look without the lock comes first: an idle instance must not open a connection for it at every poll. */
const attempt = Effect.fnUntraced(function* <Row, R>(dispatch: Dispatch<Row, R>, progress: Progress) {
  const waiting = yield* claim(dispatch, 1)
  return waiting.length === 0 ? "drained" : yield* session(dispatch, progress)
})

/** The pause after an attempt; none when it ended well. Fails for bugs alone. */
const tryOnce = <Row, R>(dispatch: Dispatch<Row, R>, progress: Progress) =>
  attempt(dispatch, progress).pipe(
    Effect.catchTag(["StoreUnavailable", "LockLost"], ({ message }) =>
      Effect.succeed({ kind: "database", reason: message } satisfies Outage.Trouble)
    ),
    Effect.flatMap((ending: Ending) => {
      if (ending === "busy") return Effect.succeedNone
      if (ending === "drained") return Effect.as(recovered(dispatch.name, progress), Option.none())
      return Effect.asSome(failed(dispatch.name, progress, ending))
    }),
    // The polls' statements would be a trace each.
    Effect.withTracerEnabled(false)
  )

const deliverForEver = <Row, R>(dispatch: Dispatch<Row, R>) => {
  const progress = { backOff: BackOff.make(), outage: Outage.make(`${dispatch.name} delivery`, dispatch.remedy) }
  return tryOnce(dispatch, progress).pipe(
    Effect.catchCause((cause) =>
      Effect.logError(`${dispatch.name} delivery failed`, cause).pipe(
        Effect.ignoreCause,
        Effect.andThen(Effect.asSome(progress.backOff.next("unavailable")))
      )
    ),
    Effect.flatMap(
      Option.match({
        onNone: () => Effect.asVoid(Effect.timeoutOption(dispatch.awaitRows, Upkeep.pollFloor)),
        onSome: Upkeep.pause
      })
    ),
    Upkeep.forEver
  )
}

/** Delivers until it is interrupted; it cannot fail and does not die. */
export const run = Effect.fnUntraced(function* <Row, R>(dispatch: Dispatch<Row, R>) {
  yield* (yield* DeliveryHealth).report(dispatch.name, { status: "up" })
  const both = [deliverForEver(dispatch), Upkeep.run(dispatch.name, dispatch.outbox)]
  yield* Effect.all(both, { concurrency: "unbounded", discard: true })
  return yield* Effect.never
})
