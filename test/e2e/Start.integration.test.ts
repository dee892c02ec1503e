/** How a worker starts: with the database away, with an address or account that never will do, without its port. */
import { describe, expect, it, vi } from "@effect/vitest"
import { Effect } from "effect"
import { execute, type LogLine, start } from "./Process.ts"
import * as Proxy from "./Proxy.ts"
import * as Rooms from "./Rooms.ts"

vi.setConfig({ testTimeout: 60_000 })

/** What was said for people, beside the log. */
const plainLines = (stderr: string) =>
  stderr
    .trimEnd()
    .split("\n")
    .filter((line) => !line.startsWith("{"))

const away = "the database is away, waiting for it"

describe("run with the database away", () => {
  it.live(
    "is alive and not ready, shows metrics at 0, waits with back-off, and works when the database comes (T6, M)",
    () =>
      Effect.gen(function* () {
        const rooms = yield* Rooms.fresh
        yield* rooms.insertDue(2)
        const door = yield* Proxy.closedDoor(rooms.env.DATABASE_URL)
        const worker = yield* start(["run"], { DATABASE_URL: door.url })
        const first = yield* worker.waitForLog(away)
        expect(first.level).toBe("WARN")
        const [second, third, fourth] = yield* Effect.forEach([1, 2, 3], () => worker.waitForLog(away, worker.said()))
        const between = (a: LogLine | undefined, b: LogLine | undefined) =>
          Date.parse(String(b?.timestamp)) - Date.parse(String(a?.timestamp))
        expect(between(third, fourth)).toBeGreaterThan(between(first, second))
        expect((yield* worker.get("/health/live")).status).toBe(200)
        expect((yield* worker.get("/health/ready")).status).toBe(503)
        const names = [
          "run_total",
          "skip_locked_total",
          "errors_total",
          "active_backlog",
          "cycle_duration_seconds_count"
        ]
        const items = ["empty_timeout", "provision_failed", "stale_timeout"].map(
          (each) => `items_total{outcome="${each}"}`
        )
        for (const name of [...names, ...items]) {
          expect([name, yield* worker.metric(`messenger_conf_reaper_${name}`)]).toEqual([name, 0])
        }
        yield* door.open
        yield* worker.waitForLog("cycle completed")
        expect((yield* worker.get("/health/ready")).status).toBe(200)
        expect(yield* rooms.standing).toEqual([Rooms.ended(2)])
      })
  )

  it.live("waits again when the connection breaks in the middle of the migration (T6)", () =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.fresh
      yield* rooms.insertDue(2)
      const worker = yield* rooms.sql.withTransaction(
        Effect.gen(function* () {
          yield* rooms.run("lock table messenger.conference_reaper_migrations")
          const starting = yield* start(["run"], rooms.env)
          yield* rooms.lockWait
          expect(yield* rooms.terminate("conference-room-reaper")).toBeGreaterThan(0)
          yield* starting.waitForLog(away)
          return starting
        })
      )
      yield* worker.waitForLog("cycle completed")
      expect(yield* rooms.standing).toEqual([Rooms.ended(2)])
    })
  )
})

describe("other commands with the database away", () => {
  it.live("end with 1, and once says failed all the same (interface: Commands)", () =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.fresh
      const { url } = yield* Proxy.closedDoor(rooms.env.DATABASE_URL)
      const run = (...args: ReadonlyArray<string>) => execute(args, { DATABASE_URL: url })
      const [once, migrate] = yield* Effect.all([run("once", "--json"), run("migrate")], { concurrency: 2 })
      expect({ code: once.code, outcome: JSON.parse(once.stdout).outcome }).toEqual({ code: 1, outcome: "failed" })
      expect({ code: migrate.code, stdout: migrate.stdout }).toEqual({ code: 1, stdout: "" })
      expect(plainLines(migrate.stderr)).toEqual([expect.stringContaining("conference-room-reaper: migrate: ")])
    })
  )
})

describe("run with what waiting does not mend", () => {
  it.live.each([
    { what: "wrong credentials", change: { password: "pass-5e55" }, said: "password authentication failed" },
    { what: "an unknown database", change: { pathname: "/nowhere" }, said: 'database "nowhere" does not exist' }
  ])("ends with 1 and one clear line on $what (interface: Commands)", ({ change, said }) =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.fresh
      const url = new URL(rooms.env.DATABASE_URL)
      Object.assign(url, change)
      const { code, stdout, stderr } = yield* execute(["run"], { DATABASE_URL: url.href })
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" })
      const lines = plainLines(stderr)
      expect(lines).toHaveLength(1)
      expect(lines[0]).toContain(said)
      expect(stderr).not.toContain(url.password)
      expect(stderr).not.toMatch(/\bat .*:\d+:\d+/)
    })
  )

  it.live("ends with 1 and one clear line when its port is in use (interface: Environment)", () =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.fresh
      const { port } = yield* Proxy.listening
      const { code, stdout, stderr } = yield* execute(["run"], { ...rooms.env, HTTP_PORT: String(port) })
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" })
      expect(plainLines(stderr)).toEqual([expect.stringContaining(`HTTP_PORT=${port}: the port is in use`)])
    })
  )
})
