/** What the contract suites share: one AsOf with microseconds, the default windows, and events that the guard decided. */
import { Effect, Result, Schema } from "effect"
import {
  type ConferenceDetails,
  type ConferenceId,
  ConferenceSession,
  type RecordingStatus
} from "../../src/domain/ConferenceSession.ts"
import type { ConferenceEnded, DomainEvent } from "../../src/domain/DomainEvent.ts"
import * as Instant from "../../src/domain/Instant.ts"
import type { Phase } from "../../src/domain/Phase.ts"
import * as PhaseTable from "../../src/domain/Phase.ts"
import { decide } from "../../src/domain/Transition.ts"
import { ConferenceRepository, type Scan } from "../../src/services/ConferenceRepository.ts"
import type { IntegrationOutbox } from "../../src/services/IntegrationOutbox.ts"
import type { RealtimeOutbox } from "../../src/services/RealtimeOutbox.ts"
import type { ReaperJournal } from "../../src/services/ReaperJournal.ts"
import { defaults } from "../../src/services/ReaperOptions.ts"
import type { RunLock } from "../../src/services/RunLock.ts"
import { Transaction } from "../../src/services/Transaction.ts"
import { activeSession, at, before, emptySession, provisioningSession, type SessionRow } from "../support/Sessions.ts"
import { Harness } from "./Harness.ts"

/** What the layer under test must provide. */
export type Ports =
  | Harness
  | Transaction
  | ConferenceRepository
  | IntegrationOutbox
  | RealtimeOutbox
  | ReaperJournal
  | RunLock

export const asOf = at("2026-03-01T12:00:00.123456Z")
export const windows: PhaseTable.Windows = defaults
export const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

export const scan = (phase: Phase): Scan => ({
  phase,
  asOf,
  cutoff: Instant.minus(asOf, phase.window(windows))
})

/** A session of which `phase` is due since exactly `asOf` when `since` is left out. */
export const due = (phase: Phase, n: number, since: Instant.Instant = scan(phase).cutoff): SessionRow =>
  ({ "empty-room": emptySession, "provision-timeout": provisioningSession, "stale-live": activeSession })[phase.name](
    n,
    since
  )

export const emptyFor = (n: number, seconds: number) => emptySession(n, before(asOf, `${seconds} seconds`))

const text = (moment: SessionRow["startedAt"]) => (typeof moment === "bigint" ? Instant.format(moment) : moment)
const decode = Schema.decodeUnknownSync(ConferenceSession)

/** The row as the domain sees it; for rows that are well formed. */
export const toSession = (row: SessionRow): ConferenceSession =>
  decode({
    ...row,
    createdAt: text(row.createdAt),
    lastActivityAt: text(row.lastActivityAt),
    startedAt: text(row.startedAt)
  })

export const noDetails: ConferenceDetails = { participants: [], recordings: [] }

/** The event of a row of which `phase` is due. */
export const eventOf = (phase: Phase, row: SessionRow, details: ConferenceDetails = noDetails): DomainEvent =>
  Result.getOrThrow(decide(phase, windows, asOf, toSession(row), details))

export const endedEvent = (n: number): ConferenceEnded => {
  const event = eventOf(PhaseTable.emptyRoom, due(PhaseTable.emptyRoom, n))
  if (event._tag !== "ConferenceEnded") throw new Error("the empty-room phase ends conferences")
  return event
}

/** A test on empty tables. */
export const onEmptyTables = <A, E, R>(body: Effect.Effect<A, E, R>) =>
  Effect.andThen(
    Effect.flatMap(Harness, (harness) => harness.reset),
    body
  )

/** Runs the body in one transaction that is committed. */
export const committed = <A, E, R>(body: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Transaction, (transaction) => transaction.run(body, () => Effect.void))

/** Ids that one claim of the phase takes, in its order. */
export const claimIds = (phase: Phase, limit = 100, tried: ReadonlyArray<ConferenceId> = []) =>
  Effect.flatMap(ConferenceRepository, (repository) => repository.claim(scan(phase), limit, tried)).pipe(
    Effect.map((rows) => rows.map((row) => row.id))
  )

export const statuses: ReadonlyArray<RecordingStatus> = ["Pending", "Recording", "Uploading", "Available", "Failed"]
