/** The command line as the outside sees it: output, exit codes, secrets (interface: Commands). */
import { once } from "node:events"
import { createServer } from "node:net"
import { join } from "node:path"
import { describe, expect, it, vi } from "@effect/vitest"
import { Effect } from "effect"
import { lockKey } from "../../src/layers/PgRunLock.ts"
import { execute } from "./Process.ts"
import * as Rooms from "./Rooms.ts"

vi.setConfig({ testTimeout: 60_000 })

/** An address where a database could be, and how often somebody came to it. */
const countedListener = Effect.acquireRelease(
  Effect.promise(async () => {
    let visits = 0
    const server = createServer((socket) => {
      visits++
      socket.destroy()
    }).listen(0, "127.0.0.1")
    await once(server, "listening")
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    return { server, visits: () => visits, url: `postgres://reaper:pass-5e55@127.0.0.1:${port}/messenger` }
  }),
  ({ server }) => Effect.sync(() => server.close())
)

describe("wrong usage", () => {
  it.live("shows help on standard error and ends with 2 when no command is given", () =>
    Effect.gen(function* () {
      const { code, stdout, stderr } = yield* execute([], {})
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
      expect(stderr).toContain("SUBCOMMANDS")
    })
  )

  it.live("shows help that was asked for on standard output and ends with 0", () =>
    Effect.gen(function* () {
      const { code, stdout, stderr } = yield* execute(["--help"], {})
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
      for (const command of ["run", "once", "migrate"]) expect(stdout).toContain(`\n  ${command} `)
    })
  )

  it.live.each([
    { what: "a flag", args: ["once", "--jsn"], named: "--jsn" },
    { what: "a command", args: ["onec"], named: "onec" }
  ])("names $what that it does not know on standard error and ends with 2", ({ args, named }) =>
    Effect.gen(function* () {
      const { code, stdout, stderr } = yield* execute(args, {})
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
      expect(stderr).toContain(named)
    })
  )
})

describe("wrong configuration", () => {
  it.live.each(["run", "once", "migrate"])(
    "stops %s with one message that names every wrong option, before the database is touched (O)",
    (command) =>
      Effect.gen(function* () {
        const listener = yield* countedListener
        const { code, stdout, stderr } = yield* execute([command], {
          DATABASE_URL: listener.url,
          REAPER_POLLING_INTERVAL: "-5 seconds",
          REAPER_BATCH_SIZE: "1.5",
          REAPER_MAX_RUN_DURATION: "5m",
          REAPER_EMPTY_ROOM_GRACE: "5h",
          RECORDER_URL: "http://recorder.test",
          HTTP_PORT: "70000"
        })
        expect({ code, stdout, visits: listener.visits() }).toEqual({ code: 2, stdout: "", visits: 0 })
        const [head, ...lines] = stderr.trimEnd().split("\n")
        expect(head).toBe("conference-room-reaper: wrong configuration, 6 problems:")
        expect(lines.map((line) => line.trim().split(/[ =]/)[0]).sort()).toEqual([
          "HTTP_PORT",
          "REAPER_BATCH_SIZE",
          "REAPER_EMPTY_ROOM_GRACE",
          "REAPER_MAX_RUN_DURATION",
          "REAPER_POLLING_INTERVAL",
          "RECORDER_SECRET"
        ])
        for (const line of lines) expect(line).toContain("; allowed: ")
        expect(stderr).not.toContain("pass-5e55")
      })
  )

  it.live("refuses to run in production without DATABASE_URL (O)", () =>
    Effect.gen(function* () {
      const { code, stdout, stderr } = yield* execute(["run"], { NODE_ENV: "production" })
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
      expect(stderr).toContain("DATABASE_URL is not set, but NODE_ENV is production")
    })
  )
})

const shiftedBy = (millis: number) => ({
  NODE_OPTIONS: `--import=${join(import.meta.dirname, "ShiftedClock.ts")}`,
  E2E_CLOCK: String(millis)
})

const keys = [
  "jobRunId",
  "asOf",
  "outcome",
  "emptyTimeoutCount",
  "provisionFailedCount",
  "staleTimeoutCount",
  "skippedLockedCount",
  "poisonCount",
  "durationMs"
]

/** What `once --json` printed: exactly one line with exactly the keys of the interface. */
const onceJson = Effect.fnUntraced(function* (environment: Record<string, string>) {
  const { code, stdout, stderr } = yield* execute(["once", "--json"], environment)
  expect(stdout).toMatch(/^\{.*\}\n$/)
  const result: Record<string, unknown> = JSON.parse(stdout)
  expect(Object.keys(result)).toEqual(keys)
  return { code, outcome: result.outcome, result, stderr }
})

describe("once", () => {
  it.live("closes what is due and prints the result as one line of JSON (M)", () =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.fresh
      yield* rooms.insertDue(3)
      const { code, result } = yield* onceJson(rooms.env)
      expect(code).toBe(0)
      expect(result).toMatchObject({ outcome: "completed", emptyTimeoutCount: 3, poisonCount: 0 })
      expect(yield* rooms.standing).toEqual([Rooms.ended(3)])
    })
  )

  it.live("answers lock-busy with exit code 0 and closes nothing while another holds the run lock (L2)", () =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.fresh
      yield* rooms.insertDue(1)
      const { sql } = rooms
      const { code, outcome } = yield* sql.withTransaction(
        Effect.andThen(sql.unsafe(`select pg_advisory_xact_lock(${lockKey})`), onceJson(rooms.env))
      )
      expect({ code, outcome }).toEqual({ code: 0, outcome: "lock-busy" })
      expect(yield* rooms.standing).toEqual([Rooms.open(1)])
    })
  )

  it.live("refuses a cycle with a clock that is off, and closes nothing (L7)", () =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.fresh
      yield* rooms.insertDue(1)
      const { code, outcome, stderr } = yield* onceJson({ ...rooms.env, ...shiftedBy(600_000) })
      expect({ code, outcome }).toEqual({ code: 1, outcome: "refused" })
      expect(stderr).toMatch(/clock is (599|600)\.\d+ s ahead of the database's/)
      expect(yield* rooms.standing).toEqual([Rooms.open(1)])
    })
  )

  it.live("answers failed with exit code 1, and says what is missing, when there are no tables (T6)", () =>
    Effect.gen(function* () {
      const { env } = yield* Rooms.empty
      const { code, outcome, stderr } = yield* onceJson(env)
      expect({ code, outcome }).toEqual({ code: 1, outcome: "failed" })
      expect(stderr).toContain('relation \\"messenger.conference_sessions\\" does not exist')
    })
  )
})

describe("what is said", () => {
  it.live("never holds a secret, and warns of a variable that nobody reads (O)", () =>
    Effect.gen(function* () {
      const rooms = yield* Rooms.fresh
      const { port } = new URL(rooms.env.DATABASE_URL)
      const secrets = {
        RECORDER_SECRET: "secret-0001",
        REALTIME_HUB_SECRET: "secret-0002",
        KAFKA_SASL_PASSWORD: "secret-0003"
      }
      const environment = {
        ...secrets,
        DATABASE_URL: `postgres://secret-user:secret-0004@127.0.0.1:${port}/nowhere?application_name=secret-0005`,
        RECORDER_URL: "http://recorder.test/stop?key=secret-0006",
        REALTIME_HUB_URL: "http://hub.test",
        KAFKA_BROKERS: "kafka.test:9092",
        KAFKA_SASL_MECHANISM: "plain",
        KAFKA_SASL_USERNAME: "reaper",
        REAPER_BATCHSIZE: "5",
        LOG_LEVEL: "trace"
      }
      const { stdout, stderr } = yield* execute(["run"], environment)
      expect(stderr).toContain(
        "REAPER_BATCHSIZE is not known and has no effect; the nearest known name is REAPER_BATCH_SIZE"
      )
      expect(stdout + stderr).not.toContain("secret-0")
      const failing = yield* execute(["once"], environment)
      expect(failing.stdout + failing.stderr).not.toContain("secret-0")
    })
  )

  it.live("puts a fault that nobody has foreseen on standard error with its cause (interface: Commands)", () =>
    Effect.gen(function* () {
      const broken = `import os from "node:os"; import { syncBuiltinESMExports } from "node:module"
        os.hostname = () => { throw new Error("no host name") }; syncBuiltinESMExports()`
      const { code, stdout, stderr } = yield* execute(["once", "--json"], {
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(broken)}`
      })
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" })
      expect(stderr).toMatch(/^conference-room-reaper: .*no host name\n\s+at /)
    })
  )
})
