/** The tables of the in-memory database: committed rows, and the writes of one open transaction laid over them. */
import type { Closing } from "../../src/domain/Closing.ts"
import type { OutboxMessage } from "../../src/domain/ConferenceEnded.ts"
import type { ConferenceId } from "../../src/domain/ConferenceSession.ts"
import type { CycleSummary } from "../../src/domain/CycleSummary.ts"
import type { Instant } from "../../src/domain/Instant.ts"
import type { PhaseName } from "../../src/domain/Phase.ts"
import type { RealtimeSignal } from "../../src/domain/RealtimeSignal.ts"
import type { ParticipantRow, RecordingRow, SessionRow } from "../support/Sessions.ts"

export interface PoisonRow {
  readonly conferenceId: ConferenceId
  readonly phase: PhaseName
  readonly attempts: number
  readonly lastError: string
  readonly firstFailedAt: Instant
  readonly lastFailedAt: Instant
  readonly nextAttemptAt: Instant
}

/** `seen` is the session's row at the record's writing: rows are immutable, so another object is a changed row. */
export interface StoredPoison extends PoisonRow {
  readonly seen: SessionRow | undefined
}

export interface RunRow extends CycleSummary {
  readonly instance: string
}

/** How far the delivery of an outbox row has come. */
export interface Delivery {
  readonly id: bigint
  readonly attempts: number
  readonly lastError: string | null
  readonly nextAttemptAt: Instant | null
  /** `published_at` or `dispatched_at`. */
  readonly deliveredAt: Instant | null
  readonly expiredAt: Instant | null
  readonly parkedAt: Instant | null
}

export const undelivered = (id: string): Delivery => ({
  id: BigInt(id),
  attempts: 0,
  lastError: null,
  nextAttemptAt: null,
  deliveredAt: null,
  expiredAt: null,
  parkedAt: null
})

export const deliveryOf = (row: Delivery): Delivery => ({
  id: row.id,
  attempts: row.attempts,
  lastError: row.lastError,
  nextAttemptAt: row.nextAttemptAt,
  deliveredAt: row.deliveredAt,
  expiredAt: row.expiredAt,
  parkedAt: row.parkedAt
})

/** The row without its delivery. */
export const asAppended = <R extends Delivery>(row: R): Omit<R, keyof Delivery> => {
  const { id, attempts, lastError, nextAttemptAt, deliveredAt, expiredAt, parkedAt, ...appended } = row
  return appended
}

export interface OutboxRow extends OutboxMessage, Delivery {}
export interface RealtimeRow extends RealtimeSignal, Delivery {}

export interface Rows {
  readonly sessions: SessionRow
  readonly participants: ParticipantRow
  readonly recordings: RecordingRow
  readonly outbox: OutboxRow
  readonly realtime: RealtimeRow
  readonly poison: StoredPoison
  readonly closings: Closing
  readonly runs: RunRow
}

export type TableName = keyof Rows

export type Committed = { readonly [N in TableName]: Map<string, Rows[N]> }
/** `undefined` stands for a removed row. */
export type Overlay = { readonly [N in TableName]: Map<string, Rows[N] | undefined> }

const eachTable = <V>(): { readonly [N in TableName]: Map<string, V> } => ({
  sessions: new Map(),
  participants: new Map(),
  recordings: new Map(),
  outbox: new Map(),
  realtime: new Map(),
  poison: new Map(),
  closings: new Map(),
  runs: new Map()
})

export const empty = (): Committed => eachTable<never>()
export const noWrites = (): Overlay => eachTable<undefined>()

const copyTable = <N extends TableName>(from: Overlay, to: Overlay, table: N): void => {
  const target: Map<string, Rows[N] | undefined> = to[table]
  for (const [key, row] of from[table]) target.set(key, row)
}

const names: ReadonlyArray<TableName> = Object.keys(eachTable()) as Array<TableName>

export const copy = (overlay: Overlay): Overlay => {
  const result = noWrites()
  for (const table of names) copyTable(overlay, result, table)
  return result
}

export const view = <N extends TableName>(
  committed: Committed,
  overlay: Overlay,
  table: N
): ReadonlyMap<string, Rows[N]> => {
  const stored: Map<string, Rows[N]> = committed[table]
  if (overlay[table].size === 0) return stored
  const rows = new Map(stored)
  for (const [key, row] of overlay[table]) {
    if (row === undefined) rows.delete(key)
    else rows.set(key, row)
  }
  return rows
}

const mergeTable = <N extends TableName>(committed: Committed, overlay: Overlay, table: N): void => {
  const target: Map<string, Rows[N]> = committed[table]
  for (const [key, row] of overlay[table]) {
    if (row === undefined) target.delete(key)
    else target.set(key, row)
  }
}

/** Makes the writes of a transaction visible to all, in one step. */
export const merge = (committed: Committed, overlay: Overlay): void => {
  for (const table of names) mergeTable(committed, overlay, table)
}

export const truncate = (committed: Committed): void => {
  for (const table of names) committed[table].clear()
}
