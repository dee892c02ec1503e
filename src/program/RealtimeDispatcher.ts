/**
 * Carries stored pushes to the hub: at least once, in order per chat, a few chats side by side (X2). After a failure of
 * a chat its later rows wait. While the hub is away no attempt is counted, so that an outage parks nothing; what has
 * outlived its use is expired, counted and not pushed.
 */
import { Effect, Result } from "effect"
import * as Instant from "../domain/Instant.ts"
import { CycleClock } from "../services/CycleClock.ts"
import { DeliveryOptions } from "../services/DeliveryOptions.ts"
import { RealtimeLock } from "../services/DispatcherLocks.ts"
import { HubPublisher } from "../services/HubPublisher.ts"
import { type PendingSignal, RealtimeOutbox } from "../services/RealtimeOutbox.ts"
import type { LockLost } from "../services/RunLock.ts"
import { WakeUps } from "../services/WakeUps.ts"
import * as DeliveryMetrics from "./DeliveryMetrics.ts"
import * as DeliveryRecord from "./DeliveryRecord.ts"
import * as Dispatcher from "./Dispatcher.ts"
import { inTime } from "./InTime.ts"
import type { Trouble } from "./Outage.ts"
import * as RowTrace from "./RowTrace.ts"
import * as Upkeep from "./Upkeep.ts"

/** Small: a push is one request, and none of a batch may be long in memory while the hub is slow. */
const maxRows = 100
const chatsAtOnce = 4
const expireBatch = 1000

const describe = (row: PendingSignal) => ({
  outboxId: String(row.id),
  chatId: row.chatId,
  sessionId: row.sessionId,
  signal: row.signal,
  ...RowTrace.correlation(row.headers)
})

const expire = Effect.gen(function* () {
  const outbox = yield* RealtimeOutbox
  const { realtimeMaxAge } = yield* DeliveryOptions
  const asOf = yield* (yield* CycleClock).asOf
  let expired: number
  do {
    expired = yield* inTime("expire", outbox.expire(Instant.minus(asOf, realtimeMaxAge), expireBatch, asOf))
    yield* DeliveryMetrics.countExpired(expired)
  } while (expired === expireBatch)
})

const push = Effect.fnUntraced(function* (row: PendingSignal) {
  const hub = yield* HubPublisher
  return yield* hub.push(row).pipe(
    Effect.withSpan("realtime.push", {
      ...RowTrace.parentOf(row.headers),
      kind: "producer",
      attributes: describe(row)
    }),
    Effect.result
  )
})

/** What the chats of one batch share: once the hub is away for one of them, no other tries. */
interface BatchState {
  delivered: number
  trouble: Trouble | null
  /** Rows that the hub answered it cannot take now. */
  readonly deferred: Array<PendingSignal>
  /** What it said to the last of them. */
  lastReason: string
}

// So many chats turned away and none taken: it is the hub and not a push.
const turnedAwayAtMost = 8

const turnAway = (row: PendingSignal, reason: string, state: BatchState): void => {
  state.deferred.push(row)
  state.lastReason = reason
  const isHub = state.delivered === 0 && state.deferred.length >= turnedAwayAtMost
  if (isHub) state.trouble = { kind: "unavailable", reason }
}

/** One push and its record, not divided by an interruption. Whether the chat's next row may follow. */
const pushAndRecord = Effect.fnUntraced(function* (row: PendingSignal, state: BatchState) {
  const ledger = { name: "realtime", outbox: yield* RealtimeOutbox, describe } as const
  const pushed = yield* push(row)
  if (Result.isSuccess(pushed)) {
    yield* DeliveryRecord.delivered(ledger, [row])
    state.delivered += 1
    return true
  }
  const { kind, reason } = pushed.failure
  if (kind === "rejected") yield* DeliveryRecord.refused(ledger, row, reason)
  else if (kind === "deferred") turnAway(row, reason, state)
  else state.trouble = { kind, reason }
  return false
}, Effect.uninterruptible)

const pushChat = Effect.fnUntraced(function* (
  rows: ReadonlyArray<PendingSignal>,
  state: BatchState,
  confirm: Effect.Effect<void, LockLost>
) {
  for (const row of rows) {
    if (state.trouble !== null) return
    yield* confirm
    if (!(yield* pushAndRecord(row, state))) return
  }
})

/**
 * A hub that turns away some and takes others is not away: those wait by themselves, and their chats with them, so that
 * they do not stand at the head of every batch. One that takes none is.
 */
const settleDeferred = Effect.fnUntraced(function* ({ delivered, trouble, deferred, lastReason: reason }: BatchState) {
  if (deferred.length === 0 || trouble !== null) return { delivered, trouble } satisfies Dispatcher.BatchEnd
  if (delivered === 0) return { delivered, trouble: { kind: "unavailable", reason } } satisfies Dispatcher.BatchEnd
  const ledger = { name: "realtime", outbox: yield* RealtimeOutbox, describe } as const
  yield* DeliveryRecord.deferred(ledger, deferred, reason)
  return { delivered, trouble: null } satisfies Dispatcher.BatchEnd
})

const deliver = Effect.fnUntraced(function* (
  rows: ReadonlyArray<PendingSignal>,
  confirm: Effect.Effect<void, LockLost>
) {
  const state: BatchState = { delivered: 0, trouble: null, deferred: [], lastReason: "" }
  const chats = [...Map.groupBy(rows, (row) => row.chatId).values()]
  yield* Effect.forEach(chats, (chat) => pushChat(chat, state, confirm), { concurrency: chatsAtOnce, discard: true })
  return yield* settleDeferred(state)
})

export const run = Effect.gen(function* () {
  return yield* Dispatcher.run({
    name: "realtime",
    remedy: "the hub does not let this client push; mend its address or secret",
    outbox: yield* RealtimeOutbox,
    lock: yield* RealtimeLock,
    batchSize: maxRows,
    awaitRows: (yield* WakeUps).awaitSignals,
    prepare: expire,
    deliver
  })
})

/** Without a hub rows wait; they are shown, and old dispatched ones removed. */
export const runWithoutHub = Effect.flatMap(RealtimeOutbox, (outbox) => Upkeep.runAlone("realtime", outbox))
