/** Nothing that is written depends on the time zone of the process or of the database. */
import { join } from "node:path"
import { expect, it, vi } from "@effect/vitest"
import { Effect } from "effect"
import { readAll, toColumns } from "../contract/PgRows.ts"
import { activeSession, at, conferenceId, emptySession, participant, provisioningSession } from "../support/Sessions.ts"
import { execute } from "./Process.ts"
import * as Rooms from "./Rooms.ts"

vi.setConfig({ testTimeout: 60_000 })

// Clocks in Berlin go back from 03:00 to 02:00 at 01:00 UTC.
const asOf = "2026-10-25T01:30:00.123Z"
const beforeTheChange = at("2026-10-24T23:30:00.123456Z")
const inTheDoubledHour = at("2026-10-25T00:30:00.654321Z")

const sessions = [
  emptySession(1, beforeTheChange, { lastActivityAt: inTheDoubledHour }),
  provisioningSession(2, inTheDoubledHour),
  activeSession(3, at("2026-10-24T20:00:00Z"))
]

/** What one cycle writes, with process and database in the zones given; without what is drawn anew each time. */
const written = Effect.fnUntraced(function* (processZone: string, databaseZone: string) {
  const rooms = yield* Rooms.fresh
  const { sql } = rooms
  yield* rooms.insert(sessions)
  const member = participant(conferenceId(1), 7, beforeTheChange, inTheDoubledHour)
  yield* sql`insert into messenger.conference_participants ${sql.insert(toColumns(member))}`
  yield* rooms.run(
    `do $$ begin execute format('alter database %I set timezone = %L', current_database(), '${databaseZone}'); end $$`
  )
  const { code, stderr } = yield* execute(["once"], {
    ...rooms.env,
    TZ: processZone,
    NODE_OPTIONS: `--import=${join(import.meta.dirname, "ShiftedClock.ts")}`,
    E2E_CLOCK: asOf,
    REAPER_MAX_CLOCK_SKEW: "0"
  })
  expect(code, stderr).toBe(0)
  return {
    sessions: yield* readAll(sql, "conference_sessions", "id"),
    events: yield* readAll<{ payload: unknown }>(sql, "outbox_messages", "message_id", ["id", "headers"]),
    pushes: yield* readAll(sql, "realtime_outbox", "session_id", ["id", "headers"]),
    closings: yield* readAll(sql, "conference_reaper_closings", "conference_id", ["job_run_id", "created_at"])
  }
})

it.live("writes the same rows and payloads over a change of the clocks as in UTC (W3)", () =>
  Effect.gen(function* () {
    const [inUtc, elsewhere] = yield* Effect.all(
      [written("UTC", "UTC"), written("Europe/Berlin", "America/Sao_Paulo")],
      { concurrency: 2 }
    )
    expect(elsewhere).toEqual(inUtc)
    expect(inUtc.closings).toHaveLength(3)
    expect(inUtc.events.map(({ payload }) => payload)).toContainEqual(
      expect.objectContaining({
        StartedAt: "2026-10-24T23:30:00.123456Z",
        EndedAt: asOf,
        DurationSeconds: 7199,
        Participants: [expect.objectContaining({ LeftAt: "2026-10-25T00:30:00.654321Z" })]
      })
    )
  })
)
