/**
 * The tables of the worker, and those of the messenger that it reads and writes. Each statement is safe against a
 * database that has the object already: in production the messenger owns all but the `conference_reaper_*` tables, and
 * then the indexes on its tables are its own business too.
 *
 * Statuses, media types and reasons are plain text without CHECK: their vocabulary is the messenger's, and a value that
 * the worker does not know must reach it as a poison row, not as a failed migration.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { createIndex, type Index } from "./Index.ts"

const tables = [
  `create table if not exists messenger.conference_sessions (
     id uuid primary key,
     chat_id uuid not null,
     deal_id uuid not null,
     tenant_id uuid not null,
     started_by_user_id uuid not null,
     media_type text not null,
     status text not null,
     end_reason text,
     created_at timestamptz not null,
     last_activity_at timestamptz not null,
     updated_at timestamptz not null,
     started_at timestamptz,
     ended_at timestamptz,
     duration_seconds integer,
     active_participant_count integer not null default 0,
     peak_participant_count integer not null default 0
   )`,
  `create table if not exists messenger.conference_participants (
     conference_id uuid not null,
     user_id uuid not null,
     joined_at timestamptz not null,
     left_at timestamptz
   )`,
  `create table if not exists messenger.call_recordings (
     id uuid primary key,
     conference_id uuid not null,
     status text not null,
     external_ref text,
     created_at timestamptz not null,
     updated_at timestamptz not null
   )`,
  `create table if not exists messenger.outbox_messages (
     id bigint generated always as identity primary key,
     message_id uuid not null unique,
     topic text not null,
     message_key text not null,
     event_type text not null,
     payload jsonb not null,
     headers jsonb not null,
     created_at timestamptz not null default now(),
     published_at timestamptz,
     attempts integer not null default 0,
     last_error text,
     next_attempt_at timestamptz,
     parked_at timestamptz
   )`,
  `create table if not exists messenger.realtime_outbox (
     id bigint generated always as identity primary key,
     kind text not null,
     target_kind text not null,
     chat_id uuid not null,
     session_kind text not null,
     session_id uuid not null,
     signal text not null,
     headers jsonb not null,
     created_at timestamptz not null default now(),
     dispatched_at timestamptz,
     expired_at timestamptz,
     attempts integer not null default 0,
     last_error text,
     next_attempt_at timestamptz,
     parked_at timestamptz
   )`,
  `create table if not exists messenger.conference_reaper_poison (
     conference_id uuid not null,
     phase text not null,
     attempts integer not null,
     last_error text not null,
     first_failed_at timestamptz not null,
     last_failed_at timestamptz not null,
     next_attempt_at timestamptz not null,
     -- xmin of the session when it was refused: any change of the row makes another attempt due at once (T5).
     row_version text,
     primary key (conference_id, phase)
   )`,
  `create table if not exists messenger.conference_reaper_closings (
     conference_id uuid primary key,
     phase text not null,
     status text not null,
     end_reason text not null,
     as_of timestamptz not null,
     due_at timestamptz not null,
     job_run_id uuid not null,
     message_id uuid,
     evidence jsonb not null,
     created_at timestamptz not null default now()
   )`,
  `create table if not exists messenger.conference_reaper_runs (
     job_run_id uuid primary key,
     instance text not null,
     as_of timestamptz not null,
     outcome text not null,
     empty_timeout_count integer not null,
     provision_failed_count integer not null,
     stale_timeout_count integer not null,
     skipped_locked_count integer not null,
     poison_count integer not null,
     duration_ms integer not null,
     error text
   )`
]

const indexes: ReadonlyArray<Index> = [
  // R8: terminal rows are in none of these three, so they cost a cycle nothing. The first serves all phases. The others were
  // measured to help: without them every claim sorts the whole backlog of provisions, and reads all occupied rooms that
  // have been silent for longer than the grace.
  {
    name: "ix_conf_active",
    table: "conference_sessions",
    on: "(status, last_activity_at, id) where status in ('Provisioning', 'Active')"
  },
  { name: "ix_conf_provisioning", table: "conference_sessions", on: "(created_at, id) where status = 'Provisioning'" },
  {
    name: "ix_conf_empty",
    table: "conference_sessions",
    on: "(last_activity_at, id) where status = 'Active' and active_participant_count = 0"
  },
  { name: "ix_conference_participants_conference", table: "conference_participants", on: "(conference_id)" },
  { name: "ix_call_recordings_conference", table: "call_recordings", on: "(conference_id)" },
  { name: "ix_conference_reaper_closings_as_of", table: "conference_reaper_closings", on: "(as_of)" },
  { name: "ix_conference_reaper_runs_as_of", table: "conference_reaper_runs", on: "(as_of)" }
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient
  for (const table of tables) yield* sql.unsafe(table)
  for (const index of indexes) yield* createIndex(index)
})
