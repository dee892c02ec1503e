/**
 * Carries event rows to the broker: at least once, in order per key, one send at a time (X1).
 *
 * Order: rows go out by id; a send keeps the order within a key, and the rows of a key are acked all or none since they
 * share a partition. What was not acked is the first of its key to be sent again, so a consumer sees repeats and never
 * a later event of a key before the first delivery of an earlier one. Two exceptions are declared: a parked row, which
 * the key policy `park` lets others pass, and a broker that acks a later row of a key and not the earlier one of the
 * same send.
 *
 * A refused row of a batch is found by halving. It waits, at growing distance, until it is parked; its neighbours go
 * out, later rows of its key wait with it.
 */
import { Effect } from "effect"
import { OutboxLock } from "../services/DispatcherLocks.ts"
import { IntegrationOutbox, type PendingEvent } from "../services/IntegrationOutbox.ts"
import type { LockLost } from "../services/RunLock.ts"
import { WakeUps } from "../services/WakeUps.ts"
import * as Dispatcher from "./Dispatcher.ts"
import type { Trouble } from "./Outage.ts"
import * as OutboxSend from "./OutboxSend.ts"
import * as Upkeep from "./Upkeep.ts"

const maxRows = 500
/** Below the broker's usual limit of 1 MiB for a partition's share, to which all rows may belong. */
const maxBytes = 800_000
/** Lengths, offsets and timestamps of a record, generously. */
const rowOverhead = 100

export const bytesOf = ({ key, value, headers }: PendingEvent): number =>
  [key, value, ...Object.entries(headers).flat()].reduce((sum, text) => sum + Buffer.byteLength(text), rowOverhead)

/** Cuts rows into sends without changing their order. A row that is too large by itself is sent alone: the broker decides. */
export const intoSends = (rows: ReadonlyArray<PendingEvent>): ReadonlyArray<ReadonlyArray<PendingEvent>> => {
  const sends: Array<Array<PendingEvent>> = []
  let room = 0
  for (const row of rows) {
    const bytes = bytesOf(row)
    const last = sends.at(-1)
    if (last === undefined || bytes > room || last.length === maxRows) {
      sends.push([row])
      room = maxBytes - bytes
    } else {
      last.push(row)
      room -= bytes
    }
  }
  return sends
}

const halves = <A>(rows: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> => {
  const middle = Math.ceil(rows.length / 2)
  return [rows.slice(0, middle), rows.slice(middle)]
}

/** Sends the pieces one after another, and what of a piece was refused in halves of it, before the next piece. */
const deliver = Effect.fnUntraced(function* (
  rows: ReadonlyArray<PendingEvent>,
  confirm: Effect.Effect<void, LockLost>
) {
  // Keys of which a row was refused just now: whether later ones may pass it, the next claim decides.
  const held = new Set<string>()
  const waiting = [...intoSends(rows)]
  let delivered = 0
  let trouble: Trouble | null = null
  while (trouble === null) {
    const piece = waiting.shift()
    if (piece === undefined) break
    const free = piece.filter((row) => !held.has(row.key))
    if (free.length === 0) continue
    yield* confirm
    const sent = yield* OutboxSend.send(free)
    delivered += sent.delivered
    trouble = sent.trouble
    if (free.length === 1) for (const row of sent.rejected) held.add(row.key)
    else waiting.unshift(...halves(sent.rejected))
  }
  return { delivered, trouble } satisfies Dispatcher.BatchEnd
})

export const run = Effect.gen(function* () {
  return yield* Dispatcher.run({
    name: "outbox",
    remedy: "the broker does not let this client write; mend its rights, the topic or the client's settings",
    outbox: yield* IntegrationOutbox,
    lock: yield* OutboxLock,
    batchSize: maxRows,
    awaitRows: (yield* WakeUps).awaitEvents,
    prepare: Effect.void,
    deliver
  })
})

/** Without a broker rows wait; they are shown, and old published ones removed. */
export const runWithoutBroker = Effect.flatMap(IntegrationOutbox, (outbox) => Upkeep.runAlone("outbox", outbox))
