/** The sessions in memory: the predicates of the phase table, read row by row. */
import { Effect, Layer, Option, Result, Schema } from "effect"
import { ConferenceDetails, type ConferenceId, ConferenceSession } from "../../src/domain/ConferenceSession.ts"
import type { DomainEvent } from "../../src/domain/DomainEvent.ts"
import * as Instant from "../../src/domain/Instant.ts"
import * as Phase from "../../src/domain/Phase.ts"
import { ConferenceRepository, MalformedRow, type Scan } from "../../src/services/ConferenceRepository.ts"
import type { Moment, SessionRow } from "../support/Sessions.ts"
import { MemoryDatabase, type MemoryTx } from "./MemoryDatabase.ts"
import { autocommitted, statement } from "./MemoryTransaction.ts"
import type { StoredPoison } from "./Tables.ts"

const order = (a: Moment, b: Moment): number => {
  const rank = (moment: Moment) => (moment === "-infinity" ? -1 : moment === "infinity" ? 1 : 0)
  if (typeof a === "bigint" && typeof b === "bigint") return a < b ? -1 : a > b ? 1 : 0
  return rank(a) - rank(b)
}

const text = (moment: Moment | null) => (typeof moment === "bigint" ? Instant.format(moment) : moment)

const isDue = ({ phase, cutoff }: Pick<Scan, "phase" | "cutoff">, row: SessionRow): boolean =>
  row.status === phase.from &&
  order(row[phase.since], cutoff) <= 0 &&
  (!phase.requiresEmpty || row.activeParticipantCount === 0)

const isOpen = (row: SessionRow | undefined) => row?.status === "Active" || row?.status === "Provisioning"

const decodeSession = Schema.decodeUnknownResult(ConferenceSession)
const decodeDetails = Schema.decodeUnknownResult(ConferenceDetails)

const malformed = (id: ConferenceId) => (error: Schema.SchemaError) =>
  new MalformedRow({ conferenceId: id, reason: error.message.replaceAll(/\s*\n\s*/g, " ") })

const toSession = (row: SessionRow) =>
  decodeSession({
    ...row,
    createdAt: text(row.createdAt),
    lastActivityAt: text(row.lastActivityAt),
    startedAt: text(row.startedAt)
  }).pipe(Result.mapError(malformed(row.id)))

const poisonKey = (id: ConferenceId, phase: Phase.PhaseName) => `${id}/${phase}`

/** Due rows that are not held back by a poison record, in the order of the claim: those with a record come last (T5). */
const candidates = (tx: MemoryTx, scan: Scan, without: ReadonlyArray<ConferenceId>) => {
  const poison = tx.rows("poison")
  const excluded = new Set(without)
  const { since } = scan.phase
  const isHeldBack = (row: SessionRow, record: StoredPoison | undefined) =>
    record !== undefined && record.nextAttemptAt > scan.asOf && record.seen === row
  return [...tx.rows("sessions").values()]
    .filter((row) => isDue(scan, row) && !excluded.has(row.id))
    .map((row) => ({ row, record: poison.get(poisonKey(row.id, scan.phase.name)) }))
    .filter(({ row, record }) => !isHeldBack(row, record))
    .sort(
      (a, b) =>
        Number(a.record !== undefined) - Number(b.record !== undefined) ||
        order(a.row[since], b.row[since]) ||
        (a.row.id < b.row.id ? -1 : 1)
    )
}

const claim = (tx: MemoryTx, scan: Scan, limit: number, tried: ReadonlyArray<ConferenceId>) =>
  candidates(tx, scan, tried)
    .filter(({ row }) => !tx.isLockedByOther("sessions", row.id))
    .slice(0, limit)
    .map(({ row, record }) => {
      tx.tryLock("sessions", row.id)
      return { id: row.id, session: toSession(row), poisonAttempts: record?.attempts ?? 0 }
    })

/** With a full batch poison is left out on both sides: nobody knows how far among it the claim would have come. */
const countSkippedLocked = (tx: MemoryTx, scan: Scan, claimed: ReadonlyArray<ConferenceId>, batchIsFull: boolean) => {
  const { since } = scan.phase
  const sessions = tx.rows("sessions")
  const poisoned = new Set([...tx.rows("poison").values()].map((record) => record.conferenceId))
  const marks = claimed.filter((id) => !poisoned.has(id)).flatMap((id) => sessions.get(id) ?? [])
  const isPassedOver = (row: SessionRow) => marks.some((mark) => order(row[since], mark[since]) <= 0)
  return candidates(tx, scan, claimed).filter(
    ({ row, record }) =>
      tx.isLockedByOther("sessions", row.id) && (!batchIsFull || (record === undefined && isPassedOver(row)))
  ).length
}

const details = (tx: MemoryTx, id: ConferenceId) => {
  const participants = [...tx.rows("participants").values()]
    .filter((row) => row.conferenceId === id)
    .sort((a, b) => order(a.joinedAt, b.joinedAt) || (a.userId < b.userId ? -1 : 1))
    .map((row) => ({ ...row, joinedAt: text(row.joinedAt), leftAt: text(row.leftAt) }))
  const recordings = [...tx.rows("recordings").values()]
    .filter((row) => row.conferenceId === id)
    .sort((a, b) => order(a.createdAt, b.createdAt) || (a.id < b.id ? -1 : 1))
    .map((row) => ({ ...row, createdAt: text(row.createdAt) }))
  return decodeDetails({ participants, recordings }).pipe(Result.mapError(malformed(id)))
}

/** Writes one transition where the whole predicate still holds, once nobody else has the row (R9). */
const applyOne = Effect.fnUntraced(function* (tx: MemoryTx, scan: Scan, event: DomainEvent) {
  yield* tx.lock("sessions", event.conferenceId)
  const row = tx.rows("sessions").get(event.conferenceId)
  if (row === undefined || !isDue(scan, row)) return Option.none()
  yield* tx.put("sessions", row.id, {
    ...row,
    status: scan.phase.to,
    endReason: scan.phase.endReason,
    endedAt: scan.asOf,
    updatedAt: scan.asOf,
    ...(event._tag === "ConferenceEnded" ? { durationSeconds: event.durationSeconds } : {})
  })
  return Option.some(row.id)
})

export const layer = Layer.effect(
  ConferenceRepository,
  Effect.gen(function* () {
    const database = yield* MemoryDatabase

    return ConferenceRepository.of({
      claim: (scan, limit, tried) => statement("claim", (tx) => Effect.sync(() => claim(tx, scan, limit, tried))),

      countSkippedLocked: (scan, claimed, batchIsFull) =>
        statement("countSkippedLocked", (tx) => Effect.sync(() => countSkippedLocked(tx, scan, claimed, batchIsFull))),

      details: (ids) =>
        autocommitted(database, "details", (tx) =>
          Effect.sync(() => new Map(ids.map((id) => [id, details(tx, id)] as const)))
        ),

      apply: (scan, events) =>
        statement("apply", (tx) =>
          Effect.gen(function* () {
            const ids = events.map((event) => event.conferenceId)
            yield* database.faults.check("apply", ids)
            const written = new Set<ConferenceId>()
            for (const event of events) {
              const id = yield* applyOne(tx, scan, event)
              if (Option.isSome(id)) written.add(id.value)
            }
            for (const [key, record] of tx.rows("poison")) {
              if (written.has(record.conferenceId)) yield* tx.put("poison", key, undefined)
            }
            return written
          })
        ),

      suppressed: (scan, ids) =>
        statement("apply", (tx) =>
          Effect.sync(() =>
            ids.filter((id) => {
              const row = tx.rows("sessions").get(id)
              return row !== undefined && isDue(scan, row)
            })
          )
        ),

      recordPoison: (scan, refusals) =>
        statement("recordPoison", (tx) =>
          Effect.forEach(
            refusals,
            (refusal) => {
              const key = poisonKey(refusal.conferenceId, scan.phase.name)
              return tx.put("poison", key, {
                ...refusal,
                phase: scan.phase.name,
                firstFailedAt: tx.rows("poison").get(key)?.firstFailedAt ?? scan.asOf,
                lastFailedAt: scan.asOf,
                seen: tx.rows("sessions").get(refusal.conferenceId)
              })
            },
            { discard: true }
          )
        ),

      backlog: (asOf, windows) =>
        autocommitted(database, "backlog", (tx) =>
          Effect.sync(() => {
            const scans = Phase.all.map((phase) => ({ phase, cutoff: Instant.minus(asOf, phase.window(windows)) }))
            const sessions = tx.rows("sessions")
            const poisoned = [...tx.rows("poison").values()].map((record) => record.conferenceId)
            return {
              overdue: [...sessions.values()].filter((row) => scans.some((scan) => isDue(scan, row))).length,
              poison: new Set(poisoned.filter((id) => isOpen(sessions.get(id)))).size
            }
          })
        )
    })
  })
)
