/** A worker whose database goes away under it: restarts, killed backends, a lost lock connection (T6, L3). */
import { describe, expect, it, vi } from "@effect/vitest"
import { Effect } from "effect"
import { conferenceId } from "../support/Sessions.ts"
import { start } from "./Process.ts"
import * as Rooms from "./Rooms.ts"
import * as Server from "./Server.ts"

vi.setConfig({ testTimeout: 60_000 })

const closedInAll = 'messenger_conf_reaper_items_total{outcome="empty_timeout"}'

/** A worker in the middle of its first batch, of ten rooms; the next tick follows at once. */
const inBatch = Effect.fnUntraced(function* (rooms: Rooms.Rooms) {
  yield* rooms.insertDue(10)
  yield* rooms.installGate
  yield* rooms.closeGate({ id: conferenceId(5) })
  const worker = yield* start(["run"], { ...rooms.env, REAPER_POLLING_INTERVAL: "300ms" })
  yield* rooms.midBatch
  expect(yield* worker.metric("messenger_conf_reaper_errors_total")).toBe(0)
  return worker
})

describe("a restart of PostgreSQL in the middle of a batch", () => {
  it.live.each(["fast", "immediate"] as const)(
    "is counted as an error, and the next cycle closes the rest, each once (-m %s) (T6)",
    (mode) =>
      Effect.gen(function* () {
        const rooms = yield* Server.rooms
        const worker = yield* inBatch(rooms)
        yield* rooms.restart(mode)
        yield* rooms.openGate
        yield* rooms.allEnded(10)
        expect(yield* rooms.standing).toEqual([Rooms.ended(10)])
        yield* worker.waitForLog(
          ({ outcome, emptyTimeoutCount }) => outcome === "completed" && emptyTimeoutCount === 10
        )
        const failed = worker.count("cycle not completed")
        expect(failed).toBeGreaterThan(0)
        expect(yield* worker.metric("messenger_conf_reaper_errors_total")).toBeGreaterThanOrEqual(failed)
        expect(yield* worker.metric(closedInAll)).toBe(10)
        expect((yield* worker.get("/health/ready")).status).toBe(200)
      })
  )
})

describe("a backend killed in the middle of a batch", () => {
  it.live("fails that phase alone, and the next cycle closes the rooms, each once (T6)", () =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.fresh
      const worker = yield* inBatch(rooms)
      expect(yield* rooms.terminate("conference-room-reaper")).toBeGreaterThan(0)
      const failed = yield* worker.waitForLog("cycle not completed")
      expect(failed).toMatchObject({ outcome: "failed", error: expect.stringContaining("empty-room: ") })
      expect(yield* worker.metric('messenger_conf_reaper_phase_errors_total{phase="empty-room"}')).toBe(1)
      expect(yield* worker.metric('messenger_conf_reaper_phase_errors_total{phase="stale-live"}')).toBe(0)
      yield* rooms.openGate
      yield* rooms.allEnded(10)
      expect(yield* rooms.standing).toEqual([Rooms.ended(10)])
      expect(yield* worker.metric(closedInAll)).toBe(10)
    })
  )

  it.live("stops the cycle before its next batch when it was the run lock's, and goes on with the next tick (L3)", () =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.fresh
      const worker = yield* inBatch(rooms)
      expect(yield* rooms.terminate("conference-room-reaper run-lock")).toBe(1)
      yield* rooms.openGate
      const failed = yield* worker.waitForLog("cycle not completed")
      expect(failed).toMatchObject({ outcome: "failed", error: expect.stringContaining("the run lock was lost") })
      yield* worker.waitForLog("cycle completed")
      expect(yield* rooms.standing).toEqual([Rooms.ended(10)])
      expect(yield* worker.metric(closedInAll)).toBe(10)
      expect(yield* worker.metric("messenger_conf_reaper_errors_total")).toBe(1)
    })
  )
})
