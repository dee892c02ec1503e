/**
 * The audit's checks as SQL. Each reads `room`, a session with what the rules say of it, and returns the breaches.
 * An open room is judged by the windows given, a closed one by the window that its evidence names: that one was in force.
 * Parameters: AsOf, allowance, EmptyRoomGrace, ProvisionTimeout, StaleLiveTimeout, whether a failed provision signals.
 */
import { topic } from "../domain/ConferenceEnded.ts"

const preamble = `
  with given as (
    select $1::timestamptz as as_of, $2::interval as allowance, $3::interval as grace, $4::interval as provision,
      $5::interval as stale, $6::boolean as failed_signal
  ),
  closing as (
    select conference_id, (evidence ->> 'windowMillis')::float8 * interval '1 millisecond' as time_window
    from messenger.conference_reaper_closings
  ),
  room as (
    select s.*, given.*,
      s.status in ('Provisioning', 'Active') as is_open,
      s.status = 'Ended' and coalesce(s.end_reason in ('EmptyTimeout', 'Timeout'), false) as ended_by_worker,
      -- The moment it fell due by the facts: of an open room the earliest window; of a closed one without evidence, none.
      case
        when s.status = 'Provisioning' then s.created_at + given.provision
        when s.status = 'Active' and s.active_participant_count = 0 then s.last_activity_at + given.grace
        when s.status = 'Active' then s.last_activity_at + given.stale
        when s.status = 'Failed' then s.created_at + closing.time_window
        when s.end_reason in ('EmptyTimeout', 'Timeout') then s.last_activity_at + closing.time_window
      end as due_at
    from messenger.conference_sessions s cross join given left join closing on closing.conference_id = s.id
  ),
  event as (
    select o.payload ->> 'ConferenceId' as conference_id, o.* from messenger.outbox_messages o where o.topic = '${topic}'
  ),
  event_count as (select conference_id, count(*)::int as events from event group by conference_id),
  signal as (select * from messenger.realtime_outbox where kind = 'ConferenceEnded'),
  signal_count as (select session_id, count(*)::int as signals from signal group by session_id),
  roster as (
    select conference_id, count(*)::int as entries, (count(*) filter (where left_at is null))::int as present,
      greatest(max(joined_at), max(left_at)) as changed_at
    from messenger.conference_participants group by conference_id
  )`

const breach = (id: string, detail: string, rest: string): string =>
  `${preamble} select (${id})::text as id, (${detail})::text as detail, count(*) over ()::int as total ${rest}`

export interface Check {
  readonly name: string
  readonly query: string
}

/** What must hold for the sessions themselves. */
const ofRooms: ReadonlyArray<Check> = [
  {
    name: "due and not closed",
    query: breach("id", "'due at ' || due_at", "from room where is_open and due_at <= as_of - allowance")
  },
  {
    name: "closed early",
    query: breach(
      "id",
      "end_reason || ', due at ' || due_at || ', ended at ' || ended_at",
      "from room where (ended_by_worker or status = 'Failed') and ended_at < due_at"
    )
  },
  {
    // R6: an empty room that waited too long may end with Timeout, but never a room with somebody in it by EmptyTimeout.
    name: "wrong end reason",
    query: breach(
      "id",
      "status || ' with ' || coalesce(end_reason, 'no reason') || ', count ' || active_participant_count",
      `from room where (is_open and end_reason is not null)
        or (status = 'Ended' and (end_reason is null or end_reason = 'Error'))
        or (status = 'Ended' and end_reason = 'EmptyTimeout' and active_participant_count <> 0)
        or (status = 'Ended' and started_at is null)
        or (status = 'Failed' and (end_reason is distinct from 'Error' or started_at is not null))
        or status not in ('Provisioning', 'Active', 'Ended', 'Failed')`
    )
  },
  {
    name: "half closed",
    query: breach(
      "id",
      "status || ', ended at ' || coalesce(ended_at::text, '-') || ', seconds ' || coalesce(duration_seconds::text, '-')",
      `from room where (is_open and (ended_at is not null or duration_seconds is not null))
        or (not is_open and ended_at is null)
        or (status = 'Failed' and duration_seconds is not null)
        or (status = 'Ended'
          and duration_seconds is distinct from floor(extract(epoch from ended_at - started_at))::int)
        or ((ended_by_worker or status = 'Failed') and updated_at <> ended_at)`
    )
  },
  {
    name: "changed after it was closed",
    query: breach(
      "room.id",
      "'ended at ' || ended_at || ', last change ' || greatest(last_activity_at, roster.changed_at)",
      `from room left join roster on roster.conference_id = room.id
        where not is_open and greatest(last_activity_at, roster.changed_at) > ended_at`
    )
  },
  {
    // Rooms without a roster were not written by a messenger that keeps one.
    name: "count is not the roster's",
    query: breach(
      "room.id",
      "'count ' || active_participant_count || ', present ' || roster.present",
      `from room join roster on roster.conference_id = room.id where active_participant_count <> roster.present`
    )
  }
]

/** What must have been written with each closing, and nothing beside it. */
const ofRows: ReadonlyArray<Check> = [
  {
    name: "closed by the worker without exactly one event",
    query: breach(
      "id",
      "coalesce(events, 0) || ' events'",
      `from room left join event_count on event_count.conference_id = room.id::text
        where ended_by_worker and coalesce(events, 0) <> 1`
    )
  },
  {
    name: "event of a room that the worker did not end",
    query: breach(
      "coalesce(event.conference_id, 'message ' || event.message_id)",
      "coalesce(room.status || ' ' || coalesce(room.end_reason, ''), 'no such room')",
      `from event left join room on room.id::text = event.conference_id where not coalesce(room.ended_by_worker, false)`
    )
  },
  {
    name: "event that does not say what the row says",
    query: breach(
      "room.id",
      "event.payload",
      `from event join room on room.id::text = event.conference_id left join roster on roster.conference_id = room.id
        where room.ended_by_worker and (event.message_key <> room.deal_id::text
          or event.payload ->> 'EndReason' is distinct from room.end_reason
          or (event.payload ->> 'EndedAt')::timestamptz is distinct from room.ended_at
          or (event.payload ->> 'StartedAt')::timestamptz is distinct from room.started_at
          or (event.payload ->> 'DurationSeconds')::int is distinct from room.duration_seconds
          or (event.payload ->> 'PeakParticipantCount')::int is distinct from room.peak_participant_count
          or jsonb_array_length(event.payload -> 'Participants') is distinct from coalesce(roster.entries, 0))`
    )
  },
  {
    name: "closed by the worker without exactly one realtime row",
    query: breach(
      "id",
      "coalesce(signals, 0) || ' rows'",
      `from room left join signal_count on signal_count.session_id = room.id
        where (ended_by_worker or (status = 'Failed' and failed_signal)) and coalesce(signals, 0) <> 1`
    )
  },
  {
    name: "realtime row of a room that the worker did not close",
    query: breach(
      "signal.session_id",
      "coalesce(room.status || ' ' || coalesce(room.end_reason, ''), 'no such room')",
      `from signal left join room on room.id = signal.session_id
        where not coalesce(room.ended_by_worker or (room.status = 'Failed' and room.failed_signal), false)`
    )
  },
  {
    name: "realtime row that does not say what the row says",
    query: breach(
      "room.id",
      "signal.signal",
      `from signal join room on room.id = signal.session_id
        where not room.is_open and (signal.signal <> room.status or signal.chat_id <> room.chat_id)`
    )
  },
  {
    name: "closed by the worker without evidence",
    query: breach(
      "room.id",
      "room.end_reason",
      `from room left join messenger.conference_reaper_closings c on c.conference_id = room.id
        where (room.ended_by_worker or room.status = 'Failed') and c.conference_id is null`
    )
  },
  {
    name: "evidence of a room that the worker did not close",
    query: breach(
      "c.conference_id",
      "coalesce(room.status || ' ' || coalesce(room.end_reason, ''), 'no such room')",
      `from messenger.conference_reaper_closings c left join room on room.id = c.conference_id
        where not coalesce(room.ended_by_worker or room.status = 'Failed', false)`
    )
  },
  {
    // R4: the facts that decided are still the row's facts, since a closing changes none of them.
    name: "evidence that does not say what the row says",
    query: breach(
      "room.id",
      "c.phase || ' ' || c.evidence",
      `from messenger.conference_reaper_closings c join room on room.id = c.conference_id
        left join event on event.conference_id = room.id::text
        where (room.ended_by_worker or room.status = 'Failed') and (c.status <> room.status
          or c.end_reason is distinct from room.end_reason
          or c.phase <> case room.end_reason
            when 'EmptyTimeout' then 'empty-room' when 'Timeout' then 'stale-live' else 'provision-timeout' end
          or c.as_of <> room.ended_at or c.due_at is distinct from room.due_at
          or c.message_id is distinct from event.message_id
          or (c.evidence ->> 'lastActivityAt')::timestamptz is distinct from room.last_activity_at
          or (c.evidence ->> 'createdAt')::timestamptz is distinct from room.created_at
          or (c.evidence ->> 'startedAt')::timestamptz is distinct from room.started_at
          or (c.evidence ->> 'activeParticipantCount')::int is distinct from room.active_participant_count)`
    )
  }
]

export const checks: ReadonlyArray<Check> = [...ofRooms, ...ofRows]

const worstDelay = (reason: string): string =>
  `(max(extract(epoch from ended_at - due_at)) filter (where not is_open and end_reason = '${reason}'))::float8`

export const figuresQuery = `${preamble}
  select count(*)::int as "rooms",
    (count(*) filter (where status = 'Provisioning'))::int as "provisioning",
    (count(*) filter (where status = 'Active'))::int as "active",
    (count(*) filter (where status = 'Ended' and not ended_by_worker))::int as "endedByMessenger",
    (count(*) filter (where status = 'Ended' and end_reason = 'EmptyTimeout'))::int as "emptyTimeout",
    (count(*) filter (where status = 'Ended' and end_reason = 'Timeout'))::int as "timeout",
    (count(*) filter (where status = 'Failed'))::int as "provisionFailed",
    (select count(*)::int from event) as "outbox",
    (select count(*)::int from signal) as "realtime",
    (select count(*)::int from messenger.conference_reaper_closings) as "closings",
    ${worstDelay("EmptyTimeout")} as "worstEmptyRoomDelay",
    ${worstDelay("Error")} as "worstProvisionDelay",
    ${worstDelay("Timeout")} as "worstStaleDelay"
  from room`
