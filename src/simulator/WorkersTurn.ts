/**
 * The time that the worker has for the rooms that a run's lives have left: until each of them is closed, or due for
 * longer than the allowance, from when on the audit calls it forgotten.
 */
import { type Duration, Effect, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Instant from "../domain/Instant.ts"
import type { Windows } from "../domain/Phase.ts"
import { interval } from "./Audit.ts"
import { systemNow } from "./MessengerWrites.ts"
import type { Run } from "./Run.ts"

interface Left {
  /** Open, and not forgotten yet. */
  readonly rooms: number
  /** When the last of them would be forgotten; null where there is none. */
  readonly until: Date | null
}

const look = "1 second"
// As long as a restart of the database may take.
const patience = Schedule.upTo(Schedule.spaced(look), { duration: "30 seconds" })

const readLeft = (run: Run, windows: Windows, allowance: Duration.Duration): Effect.Effect<Left, SqlError, SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const asOf = Instant.format(yield* systemNow)
    const [left] = yield* sql<Left>`
      select count(*)::int as "rooms", max(forgotten_at) as "until"
      from (
        select ${interval(allowance)}::interval + case
            when status = 'Provisioning' then created_at + ${interval(windows.provisionTimeout)}::interval
            when active_participant_count = 0 then last_activity_at + ${interval(windows.emptyRoomGrace)}::interval
            else last_activity_at + ${interval(windows.staleLiveTimeout)}::interval
          end as forgotten_at
        from messenger.conference_sessions
        where status in ('Provisioning', 'Active') and tenant_id = any(${run.tenantIds}::uuid[])
      ) room
      where forgotten_at > ${asOf}::timestamptz`
    return left ?? { rooms: 0, until: null }
  }).pipe(Effect.retry(patience))

/** Waits for the worker, from when the lives are over. */
export const awaitWorker = (
  run: Run,
  windows: Windows,
  allowance: Duration.Duration
): Effect.Effect<void, SqlError, SqlClient> =>
  Effect.gen(function* () {
    const left = readLeft(run, windows, allowance)
    const { rooms, until } = yield* left
    if (rooms === 0) return
    yield* Effect.logInfo("the lives are over, the worker has its turn").pipe(
      Effect.annotateLogs({ rooms, until: until?.toISOString() })
    )
    yield* left.pipe(Effect.delay(look), Effect.repeat({ until: ({ rooms }) => rooms === 0 }))
  })
