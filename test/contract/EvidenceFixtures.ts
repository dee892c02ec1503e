/** One closed room of each phase, and what is expected of it to the last field: the golden values of the evidence suites. */
import { Effect, type Tracer } from "effect"
import * as Cycle from "../../src/program/Cycle.ts"
import {
  activeSession,
  at,
  conferenceId,
  emptySession,
  participant,
  provisioningSession,
  recording,
  recordingId,
  userId
} from "../support/Sessions.ts"
import { fromTheStart } from "./CycleFixtures.ts"
import { Harness } from "./Harness.ts"
import { observed } from "./Observed.ts"

const startedAt = at("2026-03-01T10:00:00.999999Z")
const left = at("2026-03-01T11:50:00.123456Z")
const silent = at("2026-03-01T07:59:59.000001Z")
const created = at("2026-03-01T11:57:00Z")

const rooms = Effect.flatMap(Harness, (harness) =>
  Effect.all([
    harness.insertSessions([
      emptySession(1, left, { startedAt, createdAt: startedAt }),
      provisioningSession(2, created),
      activeSession(3, silent, { activeParticipantCount: 2, mediaType: "Audio" })
    ]),
    harness.insertParticipants([
      participant(conferenceId(1), 7, startedAt, left),
      participant(conferenceId(1), 8, left),
      participant(conferenceId(3), 9, silent)
    ]),
    harness.insertRecordings([
      recording(conferenceId(1), 1, startedAt, { status: "Available" }),
      recording(conferenceId(1), 2, left, { status: "Recording" }),
      recording(conferenceId(3), 3, silent, { status: "Failed" })
    ])
  ])
)

/** A test over one closed room of each phase. */
export const closed = <A, E, R>(
  body: (seen: Effect.Success<ReturnType<typeof observed<Summary, never, never>>>) => Effect.Effect<A, E, R>
) => rooms.pipe(Effect.andThen(observed(Cycle.run)), Effect.flatMap(body), fromTheStart)
type Summary = Effect.Success<typeof Cycle.run>

export const messageIds = ["689b4e8a-cccf-54b1-a0a2-db46e7071548", "f2fd03d7-e4b1-5745-b9d0-96823e7893b9"]

export const payloads = [
  {
    ConferenceId: "c0000000-0000-4000-8000-000000000001",
    ChatId: "c4a70000-0000-4000-8000-000000000001",
    DealId: "dea10000-0000-4000-8000-000000000001",
    TenantId: "7e000000-0000-4000-8000-000000000001",
    MediaType: "Video",
    Status: "Ended",
    EndReason: "EmptyTimeout",
    StartedByUserId: userId(1),
    StartedAt: "2026-03-01T10:00:00.999999Z",
    EndedAt: "2026-03-01T12:00:00.123Z",
    DurationSeconds: 7199,
    PeakParticipantCount: 3,
    Participants: [
      { UserId: userId(7), JoinedAt: "2026-03-01T10:00:00.999999Z", LeftAt: "2026-03-01T11:50:00.123456Z" },
      { UserId: userId(8), JoinedAt: "2026-03-01T11:50:00.123456Z" }
    ],
    WasRecorded: true,
    RecordingId: recordingId(2)
  },
  {
    ConferenceId: "c0000000-0000-4000-8000-000000000003",
    ChatId: "c4a70000-0000-4000-8000-000000000003",
    DealId: "dea10000-0000-4000-8000-000000000003",
    TenantId: "7e000000-0000-4000-8000-000000000003",
    MediaType: "Audio",
    Status: "Ended",
    EndReason: "Timeout",
    StartedByUserId: userId(1),
    StartedAt: "2026-03-01T07:59:59.000001Z",
    EndedAt: "2026-03-01T12:00:00.123Z",
    DurationSeconds: 14401,
    PeakParticipantCount: 3,
    Participants: [{ UserId: userId(9), JoinedAt: "2026-03-01T07:59:59.000001Z" }],
    WasRecorded: false
  }
]

/** The facts of the three closings, as they stand in the evidence and in part in the log. */
export const facts = [
  {
    lastActivityAt: "2026-03-01T11:50:00.123456Z",
    createdAt: "2026-03-01T10:00:00.999999Z",
    startedAt: "2026-03-01T10:00:00.999999Z",
    activeParticipantCount: 0,
    windowMillis: 90_000
  },
  {
    lastActivityAt: "2026-03-01T11:57:00.000Z",
    createdAt: "2026-03-01T11:57:00.000Z",
    startedAt: null,
    activeParticipantCount: 0,
    windowMillis: 120_000
  },
  {
    lastActivityAt: "2026-03-01T07:59:59.000001Z",
    createdAt: "2026-03-01T07:59:59.000001Z",
    startedAt: "2026-03-01T07:59:59.000001Z",
    activeParticipantCount: 2,
    windowMillis: 14_400_000
  }
]
export const dueAt = ["2026-03-01T11:51:30.123456Z", "2026-03-01T11:59:00.000Z", "2026-03-01T11:59:59.000001Z"]
export const ends = [
  { phase: "empty-room", status: "Ended", endReason: "EmptyTimeout" },
  { phase: "provision-timeout", status: "Failed", endReason: "Error" },
  { phase: "stale-live", status: "Ended", endReason: "Timeout" }
] as const

export const spansOf = (all: ReadonlyArray<Tracer.Span>, name: string) => all.filter((span) => span.name === name)
export const itemOf = (all: ReadonlyArray<Tracer.Span>, n: number) =>
  spansOf(all, "reaper.item").find((span) => span.attributes.get("conferenceId") === conferenceId(n))
export const traceparent = (span: Tracer.Span | undefined) => `00-${span?.traceId}-${span?.spanId}-01`
