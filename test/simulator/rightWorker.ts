/** A worker that does what the rules say, from the domain's own functions: the audit's example of a right database. */
import { Effect, Result, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as Closing from "../../src/domain/Closing.ts"
import * as ConferenceEnded from "../../src/domain/ConferenceEnded.ts"
import { ConferenceDetails, ConferenceSession, JobRunId } from "../../src/domain/ConferenceSession.ts"
import type { DomainEvent } from "../../src/domain/DomainEvent.ts"
import * as Instant from "../../src/domain/Instant.ts"
import * as Phase from "../../src/domain/Phase.ts"
import * as RealtimeSignal from "../../src/domain/RealtimeSignal.ts"
import * as Transition from "../../src/domain/Transition.ts"

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

const write = (event: DomainEvent, jobRunId: JobRunId) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const at = Instant.format(event.facts.asOf)
    const duration = event._tag === "ConferenceEnded" ? event.durationSeconds : null
    yield* sql`update messenger.conference_sessions set status = ${event.status}, end_reason = ${event.endReason},
      ended_at = ${at}, updated_at = ${at}, duration_seconds = ${duration} where id = ${event.conferenceId}`
    if (event._tag === "ConferenceEnded") {
      const message = ConferenceEnded.fromEvent(event, jobRunId, traceparent)
      yield* sql`insert into messenger.outbox_messages (message_id, topic, message_key, event_type, payload, headers)
        values (${message.messageId}, ${message.topic}, ${message.messageKey}, ${message.eventType},
          ${JSON.stringify(message.payload)}::jsonb, ${JSON.stringify(message.headers)}::jsonb)`
    }
    const signal = RealtimeSignal.fromEvent(event, jobRunId, traceparent)
    yield* sql`insert into messenger.realtime_outbox (kind, target_kind, chat_id, session_kind, session_id, signal, headers)
      values (${signal.kind}, ${signal.targetKind}, ${signal.chatId}, ${signal.sessionKind}, ${signal.sessionId},
        ${signal.signal}, ${JSON.stringify(signal.headers)}::jsonb)`
    const closing = Closing.fromEvent(event, jobRunId)
    yield* sql`insert into messenger.conference_reaper_closings
      (conference_id, phase, status, end_reason, as_of, due_at, job_run_id, message_id, evidence)
      values (${closing.conferenceId}, ${closing.phase}, ${closing.status}, ${closing.endReason}, ${at},
        ${Instant.format(closing.dueAt)}, ${jobRunId}, ${closing.messageId}, ${JSON.stringify(closing.evidence)}::jsonb)`
  })

// As JSON, so that instants keep their microseconds and decode with the domain's own schema.
const Open = Schema.Array(Schema.Struct({ session: ConferenceSession, details: ConferenceDetails }))
const decodeOpen = Schema.decodeUnknownEffect(Open)

const openRooms = Effect.gen(function* () {
  const sql = yield* SqlClient
  const rows = yield* sql`
    select json_build_object('id', id, 'chatId', chat_id, 'dealId', deal_id, 'tenantId', tenant_id,
        'startedByUserId', started_by_user_id, 'mediaType', media_type, 'status', status, 'createdAt', created_at,
        'lastActivityAt', last_activity_at, 'startedAt', started_at, 'activeParticipantCount', active_participant_count,
        'peakParticipantCount', peak_participant_count) as session,
      json_build_object(
        'participants', coalesce((select json_agg(json_build_object(
            'userId', user_id, 'joinedAt', joined_at, 'leftAt', left_at) order by joined_at)
          from messenger.conference_participants where conference_id = s.id), '[]'::json),
        'recordings', coalesce((select json_agg(json_build_object(
            'id', id, 'status', status, 'externalRef', external_ref, 'createdAt', created_at) order by created_at)
          from messenger.call_recordings where conference_id = s.id), '[]'::json)) as details
    from messenger.conference_sessions s where status in ('Provisioning', 'Active') for update of s skip locked`
  return yield* decodeOpen(rows)
})

/** One cycle at `asOf`: every room that is due then is closed, in the order of the phases. */
export const cycle = (windows: Phase.Windows, asOf: Instant.Instant) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const jobRunId = JobRunId.make(crypto.randomUUID())
    yield* sql.withTransaction(
      Effect.gen(function* () {
        for (const { session, details } of yield* openRooms) {
          const events = Phase.all.flatMap((phase) =>
            Result.match(Transition.decide(phase, windows, asOf, session, details), {
              onFailure: () => [],
              onSuccess: (event) => [event]
            })
          )
          if (events[0] !== undefined) yield* write(events[0], jobRunId)
        }
      })
    )
  })
