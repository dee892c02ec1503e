/** `simulate` as the outside sees it: wrong flags, Ctrl-C, exit codes. */
import { once } from "node:events"
import { createServer } from "node:net"
import { describe, expect, it, vi } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { execute, type Process, start } from "../e2e/Process.ts"
import { clientLayer, migratedDatabase } from "../support/postgres.ts"
import { messenger, roomOf } from "./messenger.ts"

vi.setConfig({ testTimeout: 60_000 })

const traffic = (...flags: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { url } = yield* migratedDatabase
    const simulator = yield* start(["simulate", "--hanging", "0", ...flags], { DATABASE_URL: Redacted.value(url) })
    yield* simulator.waitForLog("traffic begins")
    return { simulator, url }
  })

// One press in a terminal: npm hands it on, so that it comes twice.
const press = (simulator: Process) => Effect.andThen(simulator.kill("SIGINT"), simulator.kill("SIGINT"))

describe("simulate", () => {
  it.live.each([
    {
      flags: ["--hanging", "-1"],
      says: 'Invalid value for flag --hanging: "-1". Expected: a whole number of 0 or more'
    },
    {
      flags: ["--max-live", "0"],
      says: 'Invalid value for flag --max-live: "0". Expected: a whole number of 1 or more'
    },
    { flags: ["--duration", "-5s"], says: 'Invalid value for flag --duration: "-5s". Expected: 90s,' },
    { flags: ["--duration=-5s"], says: "it is negative" },
    { flags: ["--duration", "-5"], says: "it is a bare number and has no unit" },
    { flags: ["--rate", "-2"], says: 'Invalid value for flag --rate: "-2". Expected: a number above 0' }
  ])("refuses $flags with one message and ends with 2", ({ flags, says }) =>
    Effect.gen(function* () {
      const { code, stdout, stderr } = yield* execute(["simulate", ...flags], {})
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
      expect(stderr.split("ERROR\n").at(-1)?.trim().split("\n")).toEqual([expect.stringContaining(says)])
    })
  )

  it.live("ends with its summary and 0 at Ctrl-C when the audit finds nothing", () =>
    Effect.gen(function* () {
      const { simulator } = yield* traffic()
      yield* press(simulator)
      const { code, stdout } = yield* simulator.ended
      expect(stdout).toMatch(/^ {2}audit breaches +0$/m)
      expect(code).toBe(0)
    })
  )

  it.live("ends with 1 at Ctrl-C when the audit finds breaches, and prints how many there are", () =>
    Effect.gen(function* () {
      const { simulator, url } = yield* traffic()
      const forgotten = Effect.gen(function* () {
        const { writes, run } = yield* messenger()
        for (let number = 0; number < 60; number++) yield* writes.provision(roomOf(run, number))
      })
      yield* Effect.provide(forgotten, clientLayer(url))
      yield* press(simulator)
      const { code, stdout } = yield* simulator.ended
      expect(stdout).toMatch(/^ {2}audit breaches +60$/m)
      expect(stdout).toContain("breach: due and not closed: 10 more")
      expect(code).toBe(1)
    })
  )

  it.live("breaks off with 130 and no summary at a second Ctrl-C while it drains", () =>
    Effect.gen(function* () {
      const { simulator } = yield* traffic("--drain", "--rate", "20")
      yield* simulator.waitForLog(({ message, started }) => message === "traffic" && Number(started) > 0)
      yield* press(simulator)
      yield* simulator.waitForLog("no more rooms begin")
      // Until it is heard: just after the first one it counts as the same press.
      const again = simulator.kill("SIGINT").pipe(Effect.delay("100 millis"), Effect.forever)
      const { code, stdout } = yield* Effect.raceFirst(simulator.ended, again)
      expect({ code, stdout }).toEqual({ code: 130, stdout: "" })
    })
  )

  it.live("ends with 130 at a Ctrl-C before there is anything to sum up", () =>
    Effect.gen(function* () {
      const mute = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const server = createServer().listen(0, "127.0.0.1")
          await once(server, "listening")
          return server
        }),
        (server) => Effect.sync(() => server.close())
      )
      const address = mute.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      const simulator = yield* start(["simulate"], { DATABASE_URL: `postgres://nobody@127.0.0.1:${port}/nothing` })
      yield* simulator.waitForLog("traffic goes to")
      yield* simulator.kill("SIGINT")
      const { code, stdout } = yield* simulator.ended
      expect({ code, stdout }).toEqual({ code: 130, stdout: "" })
    })
  )
})
