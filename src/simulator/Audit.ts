/**
 * Whether the worker did right by every room in the database: all that is due closed, nothing closed early, each closing
 * with its reason, its evidence and its outbox rows, once each, and no other outbox row beside them.
 *
 * Judged from the rows alone, by an own reading of the rules in SQL, so that a fault in the worker's predicates does not
 * hide itself. Each check is one statement and so sees one snapshot: it may run while worker and messenger go on.
 */
import { Duration, Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Instant from "../domain/Instant.ts"
import type { Windows } from "../domain/Phase.ts"
import { checks, figuresQuery } from "./AuditChecks.ts"

export interface Options {
  /** The worker's windows, for the rooms that are open: a closing is judged by the window that its evidence names. */
  readonly windows: Windows
  /** The moment of the audit. */
  readonly asOf: Instant.Instant
  /** How long before `asOf` a room must have been due to count as forgotten: polling interval and one cycle's run. */
  readonly allowance: Duration.Duration
  /** Whether a failed provision has a realtime row (W2). */
  readonly provisionFailedSignal: boolean
}

interface Figures {
  readonly rooms: number
  readonly provisioning: number
  readonly active: number
  readonly endedByMessenger: number
  readonly emptyTimeout: number
  readonly timeout: number
  readonly provisionFailed: number
  /** Rows of topic pin.messenger.conference-ended.v1. */
  readonly outbox: number
  /** Rows of kind ConferenceEnded. */
  readonly realtime: number
  readonly closings: number
  /** The longest time from due to closed, in seconds; null where none was closed. */
  readonly worstEmptyRoomDelay: number | null
  readonly worstProvisionDelay: number | null
  readonly worstStaleDelay: number | null
}

export interface Report {
  /** One line for each breach, with the room's id; the first fifty of each check, and how many more there are. */
  readonly breaches: ReadonlyArray<string>
  /** All of them, those that are not listed too. */
  readonly breachCount: number
  readonly figures: Figures
}

interface BreachRow {
  readonly id: string
  readonly detail: string | null
  readonly total: number
}

/** As PostgreSQL reads it. */
export const interval = (duration: Duration.Duration): string => `${Duration.toMillis(duration)} milliseconds`

const listed = 50

const finding = (check: string, rows: ReadonlyArray<BreachRow>) => {
  const total = rows[0]?.total ?? 0
  const lines = [
    ...rows.map((row) => `${check}: ${row.id}${row.detail === null ? "" : ` (${row.detail})`}`),
    ...(total > rows.length ? [`${check}: ${total - rows.length} more`] : [])
  ]
  return { lines, total }
}

export const audit = (options: Options): Effect.Effect<Report, SqlError, SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const given = [
      Instant.format(options.asOf),
      interval(options.allowance),
      interval(options.windows.emptyRoomGrace),
      interval(options.windows.provisionTimeout),
      interval(options.windows.staleLiveTimeout),
      options.provisionFailedSignal
    ]
    const found = yield* Effect.forEach(checks, (check) =>
      sql
        .unsafe<BreachRow>(`${check.query} order by id limit ${listed}`, given)
        .pipe(Effect.map((rows) => finding(check.name, rows)))
    )
    const [figures] = yield* sql.unsafe<Figures>(figuresQuery, given)
    if (figures === undefined) return yield* Effect.die("an aggregate without a row")
    return {
      breaches: found.flatMap(({ lines }) => lines),
      breachCount: found.reduce((sum, { total }) => sum + total, 0),
      figures
    }
  })
