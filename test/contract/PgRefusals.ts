/**
 * What the contract suites add to their own PostgreSQL database: rows refused by trigger, a commit that can be held, and
 * a `deal_id` that may be missing, as in a table which the messenger has let slip.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"

/** A deferred trigger of the outbox asks for this advisory lock, so whoever holds it holds up the commit. */
export const commitGate = 424242

const refuseBy = (table: string, point: string, id: string, timing: "before insert" | "before update" | "deferred") => {
  const name = `test_refuse_${point.toLowerCase()}`
  const trigger =
    timing === "deferred"
      ? `create constraint trigger ${name} after update on messenger.${table} deferrable initially deferred`
      : `create trigger ${name} ${timing} on messenger.${table}`
  return [
    `create function ${name}() returns trigger language plpgsql as $$
     begin
       if exists (select from test_refusals r where r.point = '${point}' and r.conference_id = ${id}) then
         raise exception '${point}: refused for %', ${id} using errcode = '23514';
       end if;
       return new;
     end $$`,
    `${trigger} for each row execute function ${name}()`
  ]
}

const statements = [
  "alter table messenger.conference_sessions alter column deal_id drop not null",
  "create table test_refusals (point text not null, conference_id uuid not null)",
  ...refuseBy("conference_sessions", "apply", "new.id", "before update"),
  ...refuseBy("conference_sessions", "deferred", "new.id", "deferred"),
  ...refuseBy("outbox_messages", "append", "(new.payload ->> 'ConferenceId')::uuid", "before insert"),
  ...refuseBy("realtime_outbox", "appendRealtime", "new.session_id", "before insert"),
  ...refuseBy("conference_reaper_closings", "appendClosings", "new.conference_id", "before insert"),
  `create function test_hold_commit() returns trigger language plpgsql as $$
   begin
     perform pg_advisory_xact_lock_shared(${commitGate});
     return null;
   end $$`,
  `create constraint trigger test_hold_commit after insert on messenger.outbox_messages
     deferrable initially deferred for each row execute function test_hold_commit()`
]

export const install = Effect.gen(function* () {
  const sql = yield* SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
