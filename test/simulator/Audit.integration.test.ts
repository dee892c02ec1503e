import { describe, expect, layer } from "@effect/vitest"
import { Context, Duration, Effect, Layer } from "effect"
import { audit, type Report } from "../../src/simulator/Audit.ts"
import { checks } from "../../src/simulator/AuditChecks.ts"
import { auditAfter, options, type Rooms, traffic } from "./auditedTraffic.ts"
import { database, secondsIn } from "./messenger.ts"

class Traffic extends Context.Service<Traffic, Rooms>()("test/Traffic") {}
const closedTraffic = Layer.effect(Traffic, Effect.orDie(traffic)).pipe(Layer.provideMerge(database))

/** The checks that found something, without the details. */
const found = (report: Report) => new Set(report.breaches.map((breach) => breach.slice(0, breach.indexOf(": "))))

const sessions = "messenger.conference_sessions"
const outbox = "messenger.outbox_messages"
const realtime = "messenger.realtime_outbox"
const closings = "messenger.conference_reaper_closings"

interface Mutation {
  readonly does: string
  readonly sql: (rooms: Rooms) => string
  readonly breaks: ReadonlyArray<string>
}

const mutations: ReadonlyArray<Mutation> = [
  {
    does: "an empty room, due for longer than the allowance, that is open",
    sql: ({ justEmptied }) =>
      `update ${sessions} set last_activity_at = last_activity_at - interval '103 seconds' where id = '${justEmptied}'`,
    breaks: ["due and not closed"]
  },
  {
    does: "a room that did not come up and is open",
    sql: ({ coming }) =>
      `update ${sessions} set created_at = created_at - interval '79 seconds' where id = '${coming}'`,
    breaks: ["due and not closed"]
  },
  {
    does: "a zombie that is open",
    sql: ({ live }) =>
      `update ${sessions} set last_activity_at = last_activity_at - interval '4 hours' where id = '${live}'`,
    breaks: ["due and not closed"]
  },
  {
    does: "an empty room that was closed a microsecond early",
    sql: ({ emptied }) =>
      `update ${sessions} set last_activity_at = ended_at - interval '90 seconds' + interval '1 microsecond'
       where id = '${emptied}'`,
    breaks: ["closed early", "evidence that does not say what the row says"]
  },
  {
    does: "a live room that was closed as stale",
    sql: ({ zombie }) =>
      `update ${sessions} set last_activity_at = ended_at - interval '1 second' where id = '${zombie}'`,
    breaks: ["closed early", "evidence that does not say what the row says"]
  },
  {
    does: "a provision that was failed early",
    sql: ({ unborn }) => `update ${sessions} set created_at = created_at + interval '2 seconds' where id = '${unborn}'`,
    breaks: ["closed early", "evidence that does not say what the row says"]
  },
  {
    does: "a room with people in it that was closed as empty",
    sql: ({ emptied }) => `update ${sessions} set active_participant_count = 1 where id = '${emptied}'`,
    breaks: ["wrong end reason", "count is not the roster's", "evidence that does not say what the row says"]
  },
  {
    does: "a failed provision with another reason",
    sql: ({ unborn }) => `update ${sessions} set end_reason = 'Timeout' where id = '${unborn}'`,
    breaks: ["wrong end reason", "evidence that does not say what the row says"]
  },
  {
    does: "an end without a reason",
    sql: ({ completed }) => `update ${sessions} set end_reason = null where id = '${completed}'`,
    breaks: ["wrong end reason"]
  },
  {
    does: "a wrong duration",
    sql: ({ emptied }) => `update ${sessions} set duration_seconds = duration_seconds + 1 where id = '${emptied}'`,
    breaks: ["half closed", "event that does not say what the row says"]
  },
  {
    does: "a duration of a meeting that never was",
    sql: ({ unborn }) => `update ${sessions} set duration_seconds = 120 where id = '${unborn}'`,
    breaks: ["half closed"]
  },
  {
    does: "a closed room without EndedAt",
    sql: ({ completed }) => `update ${sessions} set ended_at = null where id = '${completed}'`,
    breaks: ["half closed"]
  },
  {
    does: "a join after the end",
    sql: ({ completed }) =>
      `update messenger.conference_participants set joined_at = joined_at + interval '1 minute'
       where conference_id = '${completed}'`,
    breaks: ["changed after it was closed"]
  },
  {
    does: "a heartbeat after the end",
    sql: ({ completed }) =>
      `update ${sessions} set last_activity_at = ended_at + interval '1 microsecond' where id = '${completed}'`,
    breaks: ["changed after it was closed"]
  },
  {
    does: "a lost join",
    sql: ({ live }) => `update ${sessions} set active_participant_count = 2 where id = '${live}'`,
    breaks: ["count is not the roster's"]
  },
  {
    does: "a missing event",
    sql: ({ emptied }) => `delete from ${outbox} where payload ->> 'ConferenceId' = '${emptied}'`,
    breaks: ["closed by the worker without exactly one event", "evidence that does not say what the row says"]
  },
  {
    does: "a second event",
    sql: ({ emptied }) =>
      `insert into ${outbox} (message_id, topic, message_key, event_type, payload, headers)
       select gen_random_uuid(), topic, message_key, event_type, payload, headers from ${outbox}
       where payload ->> 'ConferenceId' = '${emptied}'`,
    breaks: ["closed by the worker without exactly one event", "evidence that does not say what the row says"]
  },
  ...(["completed", "unborn", "live"] as const).map((room) => ({
    does: `an event of a room that the worker did not end (${room})`,
    sql: (rooms: Rooms) =>
      `insert into ${outbox} (message_id, topic, message_key, event_type, payload, headers)
       select gen_random_uuid(), topic, message_key, event_type,
         jsonb_set(payload, '{ConferenceId}', to_jsonb('${rooms[room]}'::text)), headers
       from ${outbox} where payload ->> 'ConferenceId' = '${rooms.emptied}'`,
    breaks: [
      "event of a room that the worker did not end",
      ...(room === "unborn" ? ["evidence that does not say what the row says"] : [])
    ]
  })),
  {
    does: "an event with another key",
    sql: ({ zombie }) =>
      `update ${outbox} set message_key = gen_random_uuid()::text where payload ->> 'ConferenceId' = '${zombie}'`,
    breaks: ["event that does not say what the row says"]
  },
  {
    does: "an event without its roster",
    sql: ({ zombie }) =>
      `update ${outbox} set payload = jsonb_set(payload, '{Participants}', '[]')
       where payload ->> 'ConferenceId' = '${zombie}'`,
    breaks: ["event that does not say what the row says"]
  },
  ...(["emptied", "unborn"] as const).map((room) => ({
    does: `a missing realtime row (${room})`,
    sql: (rooms: Rooms) => `delete from ${realtime} where session_id = '${rooms[room]}'`,
    breaks: ["closed by the worker without exactly one realtime row"]
  })),
  {
    does: "a realtime row of a conference that the messenger ended",
    sql: ({ completed, emptied }) =>
      `insert into ${realtime} (kind, target_kind, chat_id, session_kind, session_id, signal, headers)
       select kind, target_kind, (select chat_id from ${sessions} where id = '${completed}'), session_kind,
         '${completed}', signal, headers from ${realtime} where session_id = '${emptied}'`,
    breaks: ["realtime row of a room that the worker did not close"]
  },
  {
    does: "a realtime row with the other signal",
    sql: ({ unborn }) => `update ${realtime} set signal = 'Ended' where session_id = '${unborn}'`,
    breaks: ["realtime row that does not say what the row says"]
  },
  {
    does: "missing evidence",
    sql: ({ unborn }) => `delete from ${closings} where conference_id = '${unborn}'`,
    breaks: ["closed by the worker without evidence"]
  },
  {
    does: "evidence of a conference that the messenger ended",
    sql: ({ completed, emptied }) =>
      `update ${closings} set conference_id = '${completed}' where conference_id = '${emptied}'`,
    breaks: ["closed by the worker without evidence", "evidence of a room that the worker did not close"]
  },
  {
    does: "evidence of another moment",
    sql: ({ emptied }) =>
      `update ${closings} set due_at = due_at + interval '1 microsecond' where conference_id = '${emptied}'`,
    breaks: ["evidence that does not say what the row says"]
  },
  ...["activeParticipantCount", "createdAt", "lastActivityAt", "startedAt", "windowMillis"].map((fact) => ({
    does: `evidence without ${fact}`,
    sql: ({ emptied }: Rooms) =>
      `update ${closings} set evidence = evidence - '${fact}' where conference_id = '${emptied}'`,
    breaks: ["evidence that does not say what the row says"]
  })),
  {
    does: "evidence of another window than the one that decided",
    sql: ({ zombie }) =>
      `update ${closings} set evidence = jsonb_set(evidence, '{windowMillis}', '90000') where conference_id = '${zombie}'`,
    breaks: ["evidence that does not say what the row says"]
  },
  {
    does: "a room that was closed before its own window had passed",
    sql: ({ unborn }) =>
      `update ${closings} set due_at = due_at + interval '5 minutes',
         evidence = jsonb_set(evidence, '{windowMillis}', '420000') where conference_id = '${unborn}'`,
    breaks: ["closed early"]
  },
  {
    does: "an end by the messenger that the worker also claims",
    sql: ({ emptied }) => `update ${sessions} set end_reason = 'Completed' where id = '${emptied}'`,
    breaks: [
      "event of a room that the worker did not end",
      "realtime row of a room that the worker did not close",
      "evidence of a room that the worker did not close"
    ]
  }
]

describe("the audit", () => {
  layer(closedTraffic, { excludeTestServices: true })("of rightly closed traffic", (it) => {
    it.effect("finds nothing, and counts every kind", () =>
      Effect.gen(function* () {
        yield* Traffic
        const { breaches, figures } = yield* audit(options)
        expect(breaches).toEqual([])
        expect(figures).toEqual({
          rooms: 7,
          provisioning: 1,
          active: 2,
          endedByMessenger: 1,
          emptyTimeout: 1,
          timeout: 1,
          provisionFailed: 1,
          outbox: 2,
          realtime: 3,
          closings: 3,
          worstEmptyRoomDelay: 1,
          worstProvisionDelay: 1,
          worstStaleDelay: 1
        })
      })
    )

    for (const mutation of mutations) {
      it.effect(`reports ${mutation.does}`, () =>
        Effect.gen(function* () {
          const report = yield* auditAfter(mutation.sql(yield* Traffic))
          expect(found(report)).toEqual(new Set(mutation.breaks))
        })
      )
    }

    it.effect.each([1000, 1 / 10])(
      "judges what is closed by the windows in force then, %d times today's (W7)",
      (times) =>
        Effect.gen(function* () {
          yield* Traffic
          const { windows, asOf } = options
          const others = {
            emptyRoomGrace: Duration.times(windows.emptyRoomGrace, times),
            provisionTimeout: Duration.times(windows.provisionTimeout, times),
            staleLiveTimeout: Duration.times(windows.staleLiveTimeout, times)
          }
          // The open rooms are judged by the windows given, so these have time enough.
          const allowance = Duration.hours(1)
          const { breaches, figures } = yield* audit({ ...options, windows: others, asOf, allowance })
          expect(breaches).toEqual([])
          expect(figures).toMatchObject({ worstEmptyRoomDelay: 1, worstProvisionDelay: 1, worstStaleDelay: 1 })
        })
    )

    it.effect("lets a room be due for as long as the allowance, and no longer", () =>
      Effect.gen(function* () {
        const { justEmptied } = yield* Traffic
        const dueAgo = (allowance: Duration.Input) =>
          audit({
            ...options,
            asOf: secondsIn(20 + 4 * 3600 - 50 + 90 + 60),
            allowance: Duration.fromInputUnsafe(allowance)
          })
        const mine = (report: Report) => report.breaches.filter((breach) => breach.includes(justEmptied))
        expect(mine(yield* dueAgo("60001 millis"))).toEqual([])
        expect(mine(yield* dueAgo("60 seconds"))).toHaveLength(1)
      })
    )

    it.effect("expects no realtime row of a failed provision where that is turned off (W2)", () =>
      Effect.gen(function* () {
        const { unborn } = yield* Traffic
        const off = { provisionFailedSignal: false }
        expect(found(yield* auditAfter("select 1", off))).toEqual(
          new Set(["realtime row of a room that the worker did not close"])
        )
        expect(found(yield* auditAfter(`delete from ${realtime} where session_id = '${unborn}'`, off))).toEqual(
          new Set()
        )
      })
    )

    it.effect("lets an empty room that waited past the stale window end with Timeout (R6)", () =>
      Effect.gen(function* () {
        const { zombie } = yield* Traffic
        const report = yield* auditAfter(
          `with s as (update ${sessions} set active_participant_count = 0 where id = '${zombie}'),
             r as (update messenger.conference_participants set left_at = joined_at where conference_id = '${zombie}')
           update ${closings} set evidence = jsonb_set(evidence, '{activeParticipantCount}', '0')
           where conference_id = '${zombie}'`
        )
        expect(report.breaches).toEqual([])
      })
    )

    it.effect("lists the first fifty of a kind, says how many more there are, and counts them all", () =>
      Effect.gen(function* () {
        yield* Traffic
        const { breaches, breachCount } = yield* auditAfter(
          `insert into ${sessions} (id, chat_id, deal_id, tenant_id, started_by_user_id, media_type, status, created_at,
             last_activity_at, updated_at)
           select gen_random_uuid(), chat_id, deal_id, tenant_id, started_by_user_id, media_type, 'Provisioning',
             created_at, last_activity_at, updated_at
           from (select * from ${sessions} order by created_at limit 1) s, generate_series(1, 60)`
        )
        expect(breachCount).toBe(60)
        expect(breaches).toHaveLength(51)
        expect(breaches.at(-1)).toBe("due and not closed: 10 more")
      })
    )

    it.effect("has a mutation for every one of its checks", () =>
      Effect.sync(() => {
        const broken = new Set(mutations.flatMap((mutation) => mutation.breaks))
        expect(checks.map((check) => check.name).filter((name) => !broken.has(name))).toEqual([])
      })
    )
  })
})
