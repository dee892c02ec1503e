/**
 * The messenger's side: each command is a transaction of its own under the row lock, at the time read once it has it. On
 * a locked row it waits for the batch's end; on a terminal room it changes nothing (INV-CONF-4).
 */
import { Clock, Effect } from "effect"
import * as Instant from "../../src/domain/Instant.ts"
import type { Database } from "../fakes/MemoryDatabase.ts"
import { conferenceId, provisioningSession, type SessionRow } from "../support/Sessions.ts"
import type { Command } from "./Timeline.ts"
import type { Trouble } from "./Trouble.ts"

/** The virtual clock keeps fractions of a millisecond as a float: rounded, they are the microseconds that were meant. */
export const now = Effect.map(Clock.currentTimeNanos, (nanos) => Instant.Instant.make((nanos + 500n) / 1000n))

const admitted = (row: SessionRow, at: Instant.Instant): SessionRow => ({
  ...row,
  status: "Active",
  startedAt: at,
  lastActivityAt: at,
  updatedAt: at
})

const withCount = (row: SessionRow, count: number, at: Instant.Instant): SessionRow => ({
  ...row,
  activeParticipantCount: count,
  peakParticipantCount: Math.max(row.peakParticipantCount, count),
  lastActivityAt: at,
  updatedAt: at
})

/** The row after the command, undefined when it is refused. */
const after = ({ name, room }: Command, row: SessionRow | undefined, at: Instant.Instant): SessionRow | undefined => {
  if (name === "provision") return provisioningSession(room, at)
  if (row === undefined) return undefined
  if (name === "admit") return row.status === "Provisioning" ? admitted(row, at) : undefined
  if (row.status !== "Active") return undefined
  const count = row.activeParticipantCount
  if (name === "join") return withCount(row, count + 1, at)
  if (name === "end") return { ...row, status: "Ended", endReason: "Completed", endedAt: at, updatedAt: at }
  if (count === 0) return undefined
  return withCount(row, name === "leave" ? count - 1 : count, at)
}

type Recorder = Pick<Trouble, "record" | "noteCommit">

export const perform = (
  database: Database,
  { record, noteCommit }: Recorder,
  command: Command
): Effect.Effect<void> => {
  const room = conferenceId(command.room)
  return Effect.acquireUseRelease(
    database.begin,
    (tx) =>
      Effect.gen(function* () {
        yield* tx.lock("sessions", room)
        yield* noteCommit
        const at = yield* now
        record({ _tag: "Locked", room, at })
        if (command.hold > 0) yield* Effect.sleep(command.hold)
        const before = tx.rows("sessions").get(room)
        const written = after(command, before, at)
        if (written !== undefined) yield* tx.put("sessions", room, written)
        record({ _tag: "Unlocked", room, at: yield* now, before, after: written })
        yield* tx.end
      }),
    (tx) => tx.rollback
  )
}
