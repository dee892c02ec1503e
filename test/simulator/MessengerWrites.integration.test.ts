import { describe, expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Ref } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as Instant from "../../src/domain/Instant.ts"
import { database, messenger, noon, recordings, roomOf, roster, secondsIn, stored } from "./messenger.ts"

const text = (seconds: number) => `2026-01-01T12:00:${String(seconds).padStart(2, "0")}.000123Z`

/** A room that is admitted at second 1. */
const admittedRoom = (hold?: Effect.Effect<void>) =>
  Effect.gen(function* () {
    const given = yield* messenger(hold)
    const room = roomOf(given.run)
    yield* given.writes.provision(room)
    yield* Ref.set(given.clock, secondsIn(1))
    yield* given.writes.admit(room.id)
    return { ...given, room: room.id, user: (number: number) => given.run.userId(0, number) }
  })

const isLocked = (roomId: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    const rows = yield* sql`select 1 from messenger.conference_sessions where id = ${roomId} for update skip locked`
    return rows.length === 0
  })

/** Until some command of this database stands before a lock. */
const someoneWaits = Effect.gen(function* () {
  const sql = yield* SqlClient
  const rows =
    yield* sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  return rows.length > 0
}).pipe(Effect.repeat({ until: (waits) => waits }))

describe("the messenger's commands", () => {
  layer(database, { excludeTestServices: true })("one after the other", (it) => {
    it.effect("provision a room in Provisioning, at the messenger's time with microseconds", () =>
      Effect.gen(function* () {
        const { run, writes } = yield* messenger()
        const room = roomOf(run)
        expect(yield* writes.provision(room)).toBe(true)
        expect(yield* stored(room.id)).toEqual({
          status: "Provisioning",
          endReason: null,
          createdAt: text(0),
          startedAt: null,
          lastActivityAt: text(0),
          updatedAt: text(0),
          endedAt: null,
          durationSeconds: null,
          count: 0,
          peak: 0
        })
      })
    )

    it.effect("admit a provisioned room: Active, started now", () =>
      Effect.gen(function* () {
        const { room } = yield* admittedRoom()
        expect(yield* stored(room)).toMatchObject({
          status: "Active",
          createdAt: text(0),
          startedAt: text(1),
          lastActivityAt: text(1),
          updatedAt: text(1)
        })
      })
    )

    it.effect("count those who join and leave, keep the peak and a roster entry for each stay", () =>
      Effect.gen(function* () {
        const { clock, room, user, writes } = yield* admittedRoom()
        const atSecond = (seconds: number) => Ref.set(clock, secondsIn(seconds))
        yield* atSecond(2).pipe(Effect.andThen(writes.join(room, user(0))))
        yield* atSecond(3).pipe(Effect.andThen(writes.join(room, user(1))))
        yield* atSecond(4).pipe(Effect.andThen(writes.leave(room, user(0))))
        yield* atSecond(5).pipe(Effect.andThen(writes.leave(room, user(1))))
        yield* atSecond(6).pipe(Effect.andThen(writes.join(room, user(0))))
        expect(yield* stored(room)).toMatchObject({ count: 1, peak: 2, lastActivityAt: text(6), startedAt: text(1) })
        expect(yield* roster(room)).toEqual([
          { userId: user(0), joinedAt: text(2), leftAt: text(4) },
          { userId: user(1), joinedAt: text(3), leftAt: text(5) },
          { userId: user(0), joinedAt: text(6), leftAt: null }
        ])
      })
    )

    it.effect("change nothing when a client repeats them", () =>
      Effect.gen(function* () {
        const { clock, room, run, user, writes } = yield* admittedRoom()
        yield* writes.join(room, user(0))
        const before = yield* stored(room)
        yield* Ref.set(clock, secondsIn(9))
        expect(yield* writes.provision(roomOf(run))).toBe(true)
        expect(yield* writes.admit(room)).toBe(true)
        expect(yield* writes.join(room, user(0))).toBe(true)
        expect(yield* writes.leave(room, user(1))).toBe(true)
        expect(yield* stored(room)).toEqual(before)
        expect(yield* roster(room)).toHaveLength(1)
      })
    )

    it.effect("never count below 0", () =>
      Effect.gen(function* () {
        const { room, user, writes } = yield* admittedRoom()
        const sql = yield* SqlClient
        yield* writes.join(room, user(0))
        yield* sql`update messenger.conference_sessions set active_participant_count = 0 where id = ${room}`
        expect(yield* writes.leave(room, user(0))).toBe(true)
        expect(yield* stored(room)).toMatchObject({ count: 0 })
      })
    )

    it.effect("show life by heartbeat, without touching anything else", () =>
      Effect.gen(function* () {
        const { clock, room, writes } = yield* admittedRoom()
        const before = yield* stored(room)
        yield* Ref.set(clock, secondsIn(7))
        expect(yield* writes.heartbeat(room)).toBe(true)
        expect(yield* stored(room)).toEqual({ ...before, lastActivityAt: text(7), updatedAt: text(7) })
      })
    )

    it.effect("end a conference as Completed, with whole seconds of duration and no outbox row", () =>
      Effect.gen(function* () {
        const { clock, room, writes } = yield* admittedRoom()
        const sql = yield* SqlClient
        yield* Ref.set(clock, secondsIn(9.9))
        expect(yield* writes.endConference(room)).toBe(true)
        expect(yield* stored(room)).toMatchObject({
          status: "Ended",
          endReason: "Completed",
          endedAt: "2026-01-01T12:00:09.900123Z",
          lastActivityAt: text(1),
          durationSeconds: 8
        })
        expect(yield* sql`select id from messenger.outbox_messages`).toEqual([])
        expect(yield* sql`select id from messenger.realtime_outbox`).toEqual([])
      })
    )

    it.effect("start recordings and move them on to their last state, also after the room was closed", () =>
      Effect.gen(function* () {
        const { room, run, writes } = yield* admittedRoom()
        const [first, second] = [run.recordingId(0, 0), run.recordingId(0, 1)]
        expect(yield* writes.startRecording(room, first)).toBe(true)
        expect(yield* recordings(room)).toEqual([{ id: first, status: "Pending", externalRef: null }])
        expect(yield* writes.advanceRecording(first, "Recording")).toBe(true)
        yield* writes.endConference(room)
        expect(yield* writes.advanceRecording(first, "Available")).toBe(true)
        expect(yield* writes.advanceRecording(first, "Failed")).toBe(false)
        expect(yield* writes.advanceRecording(second, "Recording")).toBe(false)
        expect(yield* recordings(room)).toEqual([{ id: first, status: "Available", externalRef: `egress-${first}` }])
      })
    )

    for (const status of ["Ended", "Failed"]) {
      it.effect(`refuse a room in ${status} and change nothing in it (INV-CONF-4)`, () =>
        Effect.gen(function* () {
          const { clock, room, run, user, writes } = yield* admittedRoom()
          const sql = yield* SqlClient
          yield* writes.join(room, user(0))
          yield* sql`update messenger.conference_sessions set status = ${status} where id = ${room}`
          const before = [yield* stored(room), yield* roster(room)]
          yield* Ref.set(clock, secondsIn(9))
          expect(yield* writes.admit(room)).toBe(false)
          expect(yield* writes.join(room, user(1))).toBe(false)
          expect(yield* writes.leave(room, user(0))).toBe(false)
          expect(yield* writes.heartbeat(room)).toBe(false)
          expect(yield* writes.endConference(room)).toBe(false)
          expect(yield* writes.startRecording(room, run.recordingId(0, 0))).toBe(false)
          yield* writes.provision(roomOf(run))
          expect([yield* stored(room), yield* roster(room)]).toEqual(before)
          expect(yield* recordings(room)).toEqual([])
        })
      )
    }

    it.effect("refuse a room that is not admitted, or that nobody knows", () =>
      Effect.gen(function* () {
        const { run, writes } = yield* messenger()
        const room = roomOf(run)
        yield* writes.provision(room)
        for (const id of [room.id, run.conferenceId(1)]) {
          expect(yield* writes.join(id, run.userId(0, 0))).toBe(false)
          expect(yield* writes.heartbeat(id)).toBe(false)
          expect(yield* writes.endConference(id)).toBe(false)
        }
        expect(yield* writes.admit(run.conferenceId(1))).toBe(false)
      })
    )
  })

  layer(database, { excludeTestServices: true })("at the same time", (it) => {
    /** A room with one person in it, and commands that wait with the row lock held until `letGo`. */
    const held = Effect.gen(function* () {
      const isHolding = yield* Deferred.make<void>()
      const letGo = yield* Deferred.make<void>()
      const free = yield* admittedRoom()
      yield* free.writes.join(free.room, free.user(0))
      const hold = Deferred.succeed(isHolding, undefined).pipe(Effect.andThen(Deferred.await(letGo)))
      const { writes: holding } = yield* messenger(hold)
      return { ...free, holding, isHolding, letGo }
    })

    const start = { startImmediately: true }

    it.effect("hold the row lock from the write to the commit", () =>
      Effect.gen(function* () {
        const { holding, isHolding, letGo, room } = yield* held
        const command = yield* Effect.forkScoped(holding.heartbeat(room), start)
        yield* Deferred.await(isHolding)
        expect(yield* isLocked(room)).toBe(true)
        yield* Deferred.succeed(letGo, undefined)
        expect(yield* Fiber.join(command)).toBe(true)
        expect(yield* isLocked(room)).toBe(false)
      })
    )

    it.effect("lose no join when two come at once", () =>
      Effect.gen(function* () {
        const { holding, isHolding, letGo, room, user, writes } = yield* held
        const first = yield* Effect.forkScoped(holding.join(room, user(1)), start)
        yield* Deferred.await(isHolding)
        const second = yield* Effect.forkScoped(writes.join(room, user(2)), start)
        yield* someoneWaits
        yield* Deferred.succeed(letGo, undefined)
        expect([yield* Fiber.join(first), yield* Fiber.join(second)]).toEqual([true, true])
        expect(yield* stored(room)).toMatchObject({ count: 3, peak: 3 })
        expect(yield* roster(room)).toHaveLength(3)
      })
    )

    it.effect("keep the count when the last one leaves and somebody joins", () =>
      Effect.gen(function* () {
        const { holding, isHolding, letGo, room, user, writes } = yield* held
        const leave = yield* Effect.forkScoped(holding.leave(room, user(0)), start)
        yield* Deferred.await(isHolding)
        const join = yield* Effect.forkScoped(writes.join(room, user(1)), start)
        yield* someoneWaits
        yield* Deferred.succeed(letGo, undefined)
        expect([yield* Fiber.join(leave), yield* Fiber.join(join)]).toEqual([true, true])
        expect(yield* stored(room)).toMatchObject({ count: 1, peak: 1 })
      })
    )

    it.effect("refuse a join that waited for the end of the conference (INV-CONF-4)", () =>
      Effect.gen(function* () {
        const { holding, isHolding, letGo, room, user, writes } = yield* held
        const end = yield* Effect.forkScoped(holding.endConference(room), start)
        yield* Deferred.await(isHolding)
        const join = yield* Effect.forkScoped(writes.join(room, user(1)), start)
        yield* someoneWaits
        yield* Deferred.succeed(letGo, undefined)
        expect([yield* Fiber.join(end), yield* Fiber.join(join)]).toEqual([true, false])
        expect(yield* stored(room)).toMatchObject({ status: "Ended", count: 1 })
      })
    )

    it.effect("undo everything when interrupted before the commit", () =>
      Effect.gen(function* () {
        const { clock, holding, isHolding, room, user } = yield* held
        yield* Ref.set(clock, noon)
        const before = [yield* stored(room), yield* roster(room)]
        const join = yield* Effect.forkScoped(holding.join(room, user(1)), start)
        yield* Deferred.await(isHolding)
        yield* Fiber.interrupt(join)
        expect([yield* stored(room), yield* roster(room)]).toEqual(before)
        expect(yield* isLocked(room)).toBe(false)
      })
    )

    it.effect("carry twenty joins and leaves of twenty people to the right count", () =>
      Effect.gen(function* () {
        const { room, user, writes } = yield* admittedRoom()
        const people = Array.from({ length: 20 }, (_, number) => user(number))
        yield* Effect.forEach(
          people,
          (person, number) =>
            Effect.andThen(
              writes.join(room, person),
              number % 2 === 0 ? writes.leave(room, person) : Effect.succeed(true)
            ),
          { concurrency: 10 }
        )
        const row = yield* stored(room)
        const entries = yield* roster(room)
        expect(row?.count).toBe(10)
        expect(row?.count).toBe(entries.filter((entry) => entry.leftAt === null).length)
        expect(row?.lastActivityAt).toBe(Instant.format(secondsIn(1)))
      })
    )
  })
})
