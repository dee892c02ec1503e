/** What a run counts: its own tally in memory, and what became of its rooms, read from the database. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Kind, Life } from "./Life.ts"
import { shares } from "./Life.ts"
import type { Played } from "./Player.ts"
import type { Run } from "./Run.ts"

export interface Tally {
  /** Lives begun. */
  readonly started: number
  readonly startedByKind: Readonly<Record<Kind, number>>
  /** Lives played to their end, whatever the end. */
  readonly finished: number
  /** Ended by the end-conference command. */
  readonly endedByMessenger: number
  /** Over, and left for the worker to close. */
  readonly leftForWorker: number
  /** Lives with a failed attempt or a late answer: not sure to end as expected. */
  readonly disturbed: number
  /** Rooms that refused a command in an undisturbed life: the worker closed them while they were alive. */
  readonly closedAlive: ReadonlyArray<string>
}

export const nothingYet: Tally = {
  started: 0,
  startedByKind: Object.fromEntries(Object.keys(shares).map((kind) => [kind, 0])) as Record<Kind, number>,
  finished: 0,
  endedByMessenger: 0,
  leftForWorker: 0,
  disturbed: 0,
  closedAlive: []
}

export const begun = (tally: Tally, kind: Kind): Tally => ({
  ...tally,
  started: tally.started + 1,
  startedByKind: { ...tally.startedByKind, [kind]: tally.startedByKind[kind] + 1 }
})

export const over = (tally: Tally, run: Run, life: Life, played: Played): Tally => ({
  ...tally,
  finished: tally.finished + 1,
  endedByMessenger: tally.endedByMessenger + (played.endedByMessenger ? 1 : 0),
  leftForWorker: tally.leftForWorker + (played.endedByMessenger ? 0 : 1),
  disturbed: tally.disturbed + (played.disturbed ? 1 : 0),
  closedAlive:
    played.refused && !played.disturbed ? [...tally.closedAlive, run.conferenceId(life.number)] : tally.closedAlive
})

/** The run's rooms as the database has them. */
export interface Rooms {
  readonly rooms: number
  readonly open: number
  readonly endedByMessenger: number
  readonly closedByWorker: number
}

export const readRooms = (run: Run): Effect.Effect<Rooms, SqlError, SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const [rooms] = yield* sql<Rooms>`
      select count(*)::int as "rooms",
        (count(*) filter (where status in ('Provisioning', 'Active')))::int as "open",
        (count(*) filter (where status = 'Ended' and end_reason = 'Completed'))::int as "endedByMessenger",
        (count(*) filter (where status = 'Failed' or end_reason in ('EmptyTimeout', 'Timeout')))::int as "closedByWorker"
      from messenger.conference_sessions where tenant_id = any(${run.tenantIds}::uuid[])`
    return rooms ?? { rooms: 0, open: 0, endedByMessenger: 0, closedByWorker: 0 }
  })
