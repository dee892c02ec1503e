/**
 * What the tables hold while cycles are measured. Terminal and healthy rows are loaded once; due rooms are added before
 * each cycle, a third for each phase, with a roster of four and a running recording for every second one.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"

const columns = `id, chat_id, deal_id, tenant_id, started_by_user_id, media_type, status, end_reason, created_at,
  last_activity_at, updated_at, started_at, ended_at, duration_seconds, active_participant_count, peak_participant_count`
const ids = `gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid()`
const media = `case when i % 3 = 0 then 'Video' else 'Audio' end`

const execute = (statement: string) => Effect.flatMap(SqlClient, (sql) => Effect.asVoid(sql.unsafe(statement)))

/** A year of calls: nine of ten ended after up to an hour, the others failed to come up. */
export const loadTerminal = (count: number) =>
  execute(`insert into messenger.conference_sessions (${columns})
    select ${ids}, ${media}, case when failed then 'Failed' else 'Ended' end,
      case when failed then 'Error' when i % 7 = 0 then 'EmptyTimeout' else 'Completed' end,
      born, born + length, born + length, case when failed then null else born end, born + length,
      case when failed then null else extract(epoch from length)::int end, 0, case when failed then 0 else i % 8 end
    from (select i, i % 10 = 0 as failed, now() - interval '1 day' - random() * interval '365 days' as born,
      random() * interval '1 hour' as length from generate_series(1, ${count}) i)`)

/**
 * Rooms in use, and one in fifty that is coming up. Their times lie a little ahead, so that they stay within every window
 * for as long as the benchmark runs; the claims pass them over just the same.
 */
export const loadHealthy = (count: number) =>
  execute(`insert into messenger.conference_sessions (${columns})
    select ${ids}, ${media}, case when up then 'Active' else 'Provisioning' end, null,
      case when up then now() - random() * interval '2 hours' else seen end, seen, seen,
      case when up then now() - random() * interval '2 hours' end, null, null,
      case when up then 1 + i % 6 else 0 end, case when up then 1 + i % 8 else 0 end
    from (select i, i % 50 <> 0 as up, now() + interval '1 hour' - random() * interval '1 minute' as seen
      from generate_series(1, ${count}) i)`)

/** The people fall silent: nobody has left, but for an hour nothing has happened in any healthy room. */
export const silence = execute(`update messenger.conference_sessions
  set last_activity_at = last_activity_at - interval '2 hours' where status = 'Active'`)

const insertDue = (perPhase: number) => `with due as (
    insert into messenger.conference_sessions (${columns})
    select ${ids}, ${media}, case when phase = 1 then 'Provisioning' else 'Active' end, null,
      now() - age - interval '10 minutes', now() - age, now() - age,
      case when phase = 1 then null else now() - age - interval '10 minutes' end, null, null,
      case when phase = 2 then 3 else 0 end, 4
    from (select i, phase, case phase when 2 then interval '5 hours' else interval '2 minutes' end
        + random() * interval '30 minutes' as age
      from generate_series(1, ${perPhase}) i, generate_series(0, 2) phase)
    returning id, created_at),
  roster as (
    insert into messenger.conference_participants
    select id, gen_random_uuid(), created_at + n * interval '1 minute', null from due, generate_series(1, 4) n)
  insert into messenger.call_recordings
  select gen_random_uuid(), id, 'Recording', 'job-' || id, created_at, created_at from due
  where id < '80000000-0000-0000-0000-000000000000'`

/** Rooms that are due, so many in each phase. */
export const insertDueRooms = (perPhase: number) => (perPhase === 0 ? Effect.void : execute(insertDue(perPhase)))

/** As after some time of autovacuum: statistics known, dead rows gone. */
export const settle = execute("vacuum analyze")
