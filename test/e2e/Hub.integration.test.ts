/**
 * Pushes on their way from a real worker to a real hub (X2): order, body and signature; a hub that is away or refuses;
 * what `run --only` leaves of the work; a stop with a push under way.
 */
import { createHmac } from "node:crypto"
import type { ServerResponse } from "node:http"
import { describe, expect, it, vi } from "@effect/vitest"
import { Clock, Deferred, Duration, Effect } from "effect"
import * as Instant from "../../src/domain/Instant.ts"
import { receiver } from "../support/Receiver.ts"
import { before, emptySession } from "../support/Sessions.ts"
import { type Process, start } from "./Process.ts"
import * as Proxy from "./Proxy.ts"
import * as Rooms from "./Rooms.ts"

// Each test is mostly the start of a process, so a few run side by side.
vi.setConfig({ testTimeout: 60_000, maxConcurrency: 4 })

const secret = "the hub's secret"

interface Stored {
  readonly id: string
  readonly chatId: string
  readonly sessionId: string
  readonly signal: string
  readonly traceparent: string
  readonly attempts: number
  readonly state: "pending" | "dispatched" | "expired" | "parked"
}

type Answer = (body: { readonly id: number; readonly sessionId: string }, response: ServerResponse) => void

const status =
  (code: number): Answer =>
  (_, response) => {
    response.writeHead(code).end()
  }

/** A hub whose answer the test can change, and a database of its own. */
const world = Effect.gen(function* () {
  const rooms = yield* Rooms.fresh
  let answer: Answer = status(204)
  const { url, received } = yield* receiver((response) => {
    answer(JSON.parse(received.at(-1)?.body.toString() ?? ""), response)
  })
  const stored = rooms.sql<Stored>`select id::text, chat_id as "chatId", session_id as "sessionId", signal, attempts,
      headers->>'traceparent' as traceparent,
      case when parked_at is not null then 'parked' when expired_at is not null then 'expired'
        when dispatched_at is not null then 'dispatched' else 'pending' end as state
    from messenger.realtime_outbox order by realtime_outbox.id`.pipe(Effect.orDie)
  const dispatched = (count: number) =>
    rooms.until(
      `${count} pushes dispatched`,
      Effect.map(stored, (rows) => rows.filter(({ state }) => state === "dispatched").length === count)
    )
  return {
    rooms,
    received,
    stored,
    dispatched,
    pushed: () => received.map(({ body }) => JSON.parse(body.toString()).id as number),
    answer: (next: Answer) => {
      answer = next
    },
    env: { ...rooms.env, REALTIME_HUB_URL: url.href, REALTIME_HUB_SECRET: secret }
  }
})

/** Due rooms, spread over chats. */
const insertDue = (rooms: Rooms.Rooms, count: number, chats: number) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    rooms.insert(
      Array.from({ length: count }, (_, n) => {
        const { chatId } = emptySession(n % chats, Instant.fromMillis(now))
        return emptySession(n, before(Instant.fromMillis(now), `${600 + n} seconds`), { chatId })
      })
    )
  )

/** Pushes as an earlier run has left them, oldest first, all of one chat. */
const insertPushes = (rooms: Rooms.Rooms, ...agesInHours: ReadonlyArray<number>) =>
  Effect.forEach(
    agesInHours,
    (hours) => rooms.sql`insert into messenger.realtime_outbox
      (kind, target_kind, chat_id, session_kind, session_id, signal, headers, created_at)
      values ('ConferenceEnded', 'ChatGroup', 'c4a70000-0000-4000-8000-000000000001', 'Conference',
        gen_random_uuid(), 'Ended', '{}', now() - make_interval(hours => ${hours}::int))`,
    { discard: true }
  ).pipe(Effect.orDie)

const readiness = (worker: Process) =>
  Effect.map(worker.get("/health/ready"), ({ status: code, body }) => ({ code, ...JSON.parse(body) }))

const becomes = (rooms: Rooms.Rooms, worker: Process, health: string) =>
  rooms.until(
    `the worker is ${health}`,
    Effect.map(readiness(worker), (found) => found.status === health)
  )

const endsWell = (worker: Process) =>
  Effect.map(worker.ended, ({ code, signal, stderr }) =>
    expect({ code, signal }, stderr).toEqual({ code: 0, signal: null })
  )

describe.concurrent("SIGTERM with a push under way", () => {
  it.live("waits for the hub's answer, marks the row and begins no other (X2, L5)", () =>
    Effect.gen(function* () {
      const { rooms, env, pushed, stored, answer } = yield* world
      const arrived = yield* Deferred.make<ServerResponse>()
      answer((_, response) => Deferred.doneUnsafe(arrived, Effect.succeed(response)))
      yield* insertPushes(rooms, 0, 0)
      const worker = yield* start(["run", "--only", "realtime"], env)
      const response = yield* Deferred.await(arrived)
      yield* worker.kill("SIGTERM")
      // Nothing tells that the signal has come.
      yield* Effect.sleep("300 millis")
      response.writeHead(204).end()
      yield* endsWell(worker)
      expect(pushed()).toEqual([1])
      expect((yield* stored).map(({ state }) => state)).toEqual(["dispatched", "pending"])
    })
  )

  it.live("ends within the push's deadline when the hub never answers, and leaves the row pending (X2, L5)", () =>
    Effect.gen(function* () {
      const { rooms, env, stored, answer } = yield* world
      const arrived = yield* Deferred.make<void>()
      answer(() => Deferred.doneUnsafe(arrived, Effect.void))
      yield* insertPushes(rooms, 0)
      const worker = yield* start(["run", "--only", "realtime"], env)
      yield* Deferred.await(arrived)
      yield* worker.kill("SIGTERM")
      const [took] = yield* Effect.timed(endsWell(worker))
      expect(Duration.toSeconds(took)).toBeLessThan(10)
      expect((yield* stored).map(({ attempts, state }) => [attempts, state])).toEqual([[0, "pending"]])
    })
  )
})

describe.concurrent("run with a hub", () => {
  it.live("pushes each closing once, in order per chat, signed, in the trace that wrote it (X2)", () =>
    Effect.gen(function* () {
      const { rooms, env, received, stored, dispatched } = yield* world
      yield* insertDue(rooms, 60, 7)
      yield* start(["run"], env)
      yield* dispatched(60)
      expect(received.length).toBe(60)
      const bodies = received.map(({ body }) => JSON.parse(body.toString()))
      for (const [n, { method, headers, body }] of received.entries()) {
        const row = (yield* stored).find(({ id }) => Number(id) === bodies[n].id)
        const { chatId, sessionId, signal, traceparent } = row ?? {}
        expect(bodies[n]).toEqual({
          id: Number(row?.id),
          kind: "ConferenceEnded",
          targetKind: "ChatGroup",
          chatId,
          sessionKind: "Conference",
          sessionId,
          signal
        })
        expect({ method, ...headers }).toMatchObject({
          method: "POST",
          "content-type": "application/json",
          "x-signature": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
          traceparent
        })
      }
      const rows = yield* stored
      for (const [chat, own] of Map.groupBy(rows, ({ chatId }) => chatId)) {
        expect(bodies.filter(({ chatId }) => chatId === chat).map(({ id }) => String(id))).toEqual(
          own.map(({ id }) => id)
        )
      }
    })
  )

  it.live("waits while nobody listens, counts no attempt, says so, and delivers when the hub comes (X2)", () =>
    Effect.gen(function* () {
      const { rooms, env, received, stored, dispatched } = yield* world
      const door = yield* Proxy.closedDoor(env.REALTIME_HUB_URL)
      yield* insertDue(rooms, 3, 1)
      const worker = yield* start(["run"], { ...env, REALTIME_HUB_URL: door.url, OUTBOX_MAX_ATTEMPTS: "1" })
      yield* becomes(rooms, worker, "degraded")
      expect(yield* readiness(worker)).toMatchObject({
        code: 200,
        delivery: {
          outbox: { status: "not-configured" },
          realtime: { reason: expect.stringContaining("ECONNREFUSED") }
        }
      })
      expect((yield* worker.get("/health/live")).status).toBe(200)
      expect((yield* stored).map(({ attempts, state }) => [attempts, state])).toEqual([
        [0, "pending"],
        [0, "pending"],
        [0, "pending"]
      ])
      yield* door.open
      yield* dispatched(3)
      yield* becomes(rooms, worker, "ready")
      expect(received.length).toBe(3)
      expect((yield* stored).every(({ attempts }) => attempts === 0)).toBe(true)
    })
  )

  it.live.each([
    [500, "unavailable"],
    [401, "misconfigured"],
    [404, "misconfigured"]
  ] as const)("takes %d for %s, and delivers when the hub takes pushes (X2)", ([code, kind]) =>
    Effect.gen(function* () {
      const { rooms, env, pushed, stored, answer, dispatched } = yield* world
      answer(status(code))
      yield* insertPushes(rooms, 0, 0)
      const worker = yield* start(["run"], { ...env, OUTBOX_MAX_ATTEMPTS: "1" })
      yield* becomes(rooms, worker, "degraded")
      expect((yield* readiness(worker)).delivery.realtime.reason).toContain(`the hub answered ${code}`)
      expect(yield* worker.metric(`messenger_realtime_failures_total{kind="${kind}"}`)).toBeGreaterThan(0)
      answer(status(204))
      yield* dispatched(2)
      yield* becomes(rooms, worker, "ready")
      // The first one alone was tried, and is the first to be taken.
      expect(pushed().slice(-2)).toEqual([1, 2])
      expect(
        pushed()
          .slice(0, -2)
          .every((id) => id === 1)
      ).toBe(true)
      expect((yield* stored).every(({ attempts }) => attempts === 0)).toBe(true)
    })
  )

  it.live("parks a push that the hub refuses, and goes on with the others of its chat (X2)", () =>
    Effect.gen(function* () {
      const { rooms, env, stored, answer, dispatched } = yield* world
      answer(({ id }, response) => status(id === 2 ? 400 : 204)({ id, sessionId: "" }, response))
      yield* insertPushes(rooms, 0, 0, 0)
      const worker = yield* start(["run"], { ...env, OUTBOX_MAX_ATTEMPTS: "1" })
      yield* dispatched(2)
      expect((yield* stored).map(({ attempts, state }) => [attempts, state])).toEqual([
        [0, "dispatched"],
        [1, "parked"],
        [0, "dispatched"]
      ])
      expect(yield* worker.waitForLog("realtime row parked")).toMatchObject({
        level: "ERROR",
        outboxId: "2",
        reason: "the hub answered 400"
      })
      yield* rooms.until(
        "the gauge shows it",
        Effect.map(worker.metric("messenger_realtime_parked"), (parked) => parked === 1)
      )
      expect(yield* worker.metric('messenger_realtime_failures_total{kind="rejected"}')).toBe(1)
      expect((yield* readiness(worker)).status).toBe("ready")
    })
  )
})

describe.concurrent("run --only", () => {
  it.live("realtime: pushes, expires what is older than REALTIME_MAX_AGE, closes no room and stays live (X2)", () =>
    Effect.gen(function* () {
      const { rooms, env, pushed, stored, dispatched } = yield* world
      yield* rooms.insertDue(2)
      yield* insertPushes(rooms, 48, 3, 0)
      // Live means: a sign of life within the last two seconds.
      const short = { REAPER_POLLING_INTERVAL: "500ms", REAPER_MAX_RUN_DURATION: "1s", REALTIME_MAX_AGE: "2h" }
      const worker = yield* start(["run", "--only", "realtime"], { ...env, ...short })
      yield* dispatched(1)
      expect((yield* stored).map(({ state }) => state)).toEqual(["expired", "expired", "dispatched"])
      expect(pushed()).toEqual([3])
      yield* Effect.sleep("2500 millis")
      expect((yield* worker.get("/health/live")).status).toBe(200)
      expect(yield* worker.metric("messenger_realtime_expired_total")).toBe(2)
      expect(yield* rooms.standing).toEqual([Rooms.open(2)])
      expect(worker.count("cycle started")).toBe(0)
    })
  )

  it.live("reaper: closes rooms, delivers nothing and removes nothing of what was delivered (X2)", () =>
    Effect.gen(function* () {
      const { rooms, env, pushed, stored } = yield* world
      yield* insertPushes(rooms, 0)
      yield* rooms.run("update messenger.realtime_outbox set dispatched_at = now() - interval '30 days'")
      yield* rooms.insertDue(2)
      const worker = yield* start(["run", "--only", "reaper"], { ...env, REAPER_POLLING_INTERVAL: "500ms" })
      yield* worker.waitForCount("cycle completed", 4)
      yield* rooms.allEnded(2)
      expect(pushed()).toEqual([])
      expect((yield* stored).map(({ state }) => state)).toEqual(["dispatched", "pending", "pending"])
      expect((yield* readiness(worker)).delivery.realtime.status).toBe("not-configured")
      expect(worker.count("listening for new outbox rows")).toBe(0)
    })
  )
})
