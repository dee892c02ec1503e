import { spawn } from "node:child_process"
import { assert, it } from "@effect/vitest"
import { Cause, Effect, Option, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { afterEach, beforeEach, describe, expect, vi } from "vitest"
import * as Logging from "../../src/layers/Logging.ts"

let written = ""

beforeEach(() => {
  written = ""
  vi.spyOn(process.stderr, "write").mockImplementation((chunk) => {
    written += chunk
    return true
  })
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

const json = Logging.layer({ level: "Info", format: Option.some("json") }, false)
const pretty = Logging.layer({ level: "Info", format: Option.some("pretty") }, false)
const lines = () => written.trimEnd().split("\n")
const records = () => lines().map((line) => JSON.parse(line) as Record<string, unknown>)
const hostile = {
  get value(): string {
    throw new Error("not today")
  }
}

describe("JSON", () => {
  it.effect("writes one object a line with its annotations at the top level (M)", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.UTC(2026, 0, 2, 3, 4, 5, 6))
      yield* Effect.logInfo("cycle started")
      yield* Effect.logWarning("conference reaped", { Status: "Ended" }).pipe(
        Effect.annotateLogs({ correlationId: "run-1", DurationSeconds: 7, windows: [1, 2] })
      )
      expect(records()).toEqual([
        { timestamp: "2026-01-02T03:04:05.006Z", level: "INFO", message: "cycle started" },
        {
          timestamp: "2026-01-02T03:04:05.006Z",
          level: "WARN",
          message: 'conference reaped {"Status":"Ended"}',
          correlationId: "run-1",
          DurationSeconds: 7,
          windows: [1, 2]
        }
      ])
    }).pipe(Effect.provide(json))
  )

  it.effect("keeps its own fields when an annotation has the same name", () =>
    Effect.gen(function* () {
      yield* Effect.logError("kept").pipe(Effect.annotateLogs({ message: "m", level: "l", cause: "c", traceId: "t" }))
      expect(records()[0]).toMatchObject({
        message: "kept",
        level: "ERROR",
        "annotations.message": "m",
        "annotations.level": "l",
        "annotations.cause": "c",
        "annotations.traceId": "t"
      })
      expect(written.match(/"message":/g)).toHaveLength(1)
    }).pipe(Effect.provide(json))
  )

  it.effect("tells the trace inside a span and none outside or where tracing is off", () =>
    Effect.gen(function* () {
      yield* Effect.logInfo("in").pipe(Effect.withSpan("cycle"))
      yield* Effect.logInfo("out")
      yield* Effect.logInfo("off").pipe(Effect.withSpan("cycle"), Effect.withTracerEnabled(false))
      const [inside, outside, off] = records()
      expect(inside).toMatchObject({
        traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
        spanId: expect.stringMatching(/^[0-9a-f]{16}$/)
      })
      expect(outside).not.toHaveProperty("traceId")
      expect(off).not.toHaveProperty("traceId")
    }).pipe(Effect.provide(json))
  )

  it.effect("prints a cause, and the stack of an error given as a message", () =>
    Effect.gen(function* () {
      yield* Effect.logError("failed", Cause.die(new Error("bug")))
      yield* Effect.logError("failed", new TypeError("slip"))
      const [died, passed] = records()
      expect(died).toMatchObject({ message: "failed", cause: expect.stringMatching(/^Error: bug\n +at /) })
      expect(passed).toMatchObject({
        message: "failed TypeError: slip",
        cause: expect.stringMatching(/^TypeError: slip\n +at /)
      })
    }).pipe(Effect.provide(json))
  )

  it.effect("survives bigints, circles, throwing getters and proxies, and loses no other field", () =>
    Effect.gen(function* () {
      const circle: Record<string, unknown> = { count: 3n }
      circle.self = circle
      const revoked = Proxy.revocable({}, {})
      revoked.revoke()
      yield* Effect.logInfo("still here").pipe(
        Effect.annotateLogs({ big: 9_007_199_254_740_993n, circle, hostile, revoked: revoked.proxy, last: "seen" })
      )
      yield* Effect.logInfo(hostile)
      expect(records()).toMatchObject([
        {
          message: "still here",
          big: "9007199254740993",
          circle: { count: "3n" },
          hostile: "<unprintable>",
          revoked: "<unprintable>",
          last: "seen"
        },
        { level: "INFO" }
      ])
    }).pipe(Effect.provide(json))
  )

  it.effect("never prints what is redacted", () =>
    Effect.gen(function* () {
      const secret = Redacted.make("hunter2")
      yield* Effect.logInfo("with", secret, { secret }).pipe(Effect.annotateLogs({ secret, deep: [{ secret }] }))
      expect(written).not.toContain("hunter2")
      expect(records()[0]).toMatchObject({ secret: "<redacted>", deep: [{ secret: "<redacted>" }] })
    }).pipe(Effect.provide(json))
  )

  it.effect("keeps a message of several lines on one", () =>
    Effect.gen(function* () {
      yield* Effect.logInfo('a\nb\u2028c"\u0000')
      expect(lines()).toHaveLength(1)
      expect(records()[0]?.message).toBe('a\nb\u2028c"\u0000')
    }).pipe(Effect.provide(json))
  )
})

describe("pretty", () => {
  it.effect("reads as time, level, message and pairs, the cause indented below", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.UTC(2026, 0, 2, 3, 4, 5, 6))
      yield* Effect.logWarning("batch selected", Cause.fail("why")).pipe(
        Effect.annotateLogs({ phase: "empty-room", count: 3, note: "two words" })
      )
      expect(lines()).toEqual([
        '03:04:05.006 WARN  batch selected phase=empty-room count=3 note="two words"',
        "  Error: why"
      ])
    }).pipe(Effect.provide(pretty))
  )

  it.effect("lets no text from outside steer the terminal or forge a line", () =>
    Effect.gen(function* () {
      yield* Effect.logInfo("a\u001b[2Jb\r\n12:00:00.000 ERROR forged").pipe(
        Effect.annotateLogs({ v: "x\u001b[31m\ny" })
      )
      expect(written).not.toContain("\u001b")
      expect(lines()[1]).toMatch(/^ {2}12:00/)
      expect(lines()).toHaveLength(2)
    }).pipe(Effect.provide(pretty))
  )

  it.effect("survives values that cannot be printed", () =>
    Effect.gen(function* () {
      yield* Effect.logInfo("still here").pipe(Effect.annotateLogs({ hostile, last: 1n }))
      expect(written).toContain('still here hostile="<unprintable>" last="1"')
    }).pipe(Effect.provide(pretty))
  )
})

describe("the choice of form", () => {
  const unset = { level: "Info", format: Option.none() } as const
  const say = (stderrIsTTY: boolean, log: Parameters<typeof Logging.layer>[0] = unset) =>
    Effect.logInfo("hi").pipe(
      Effect.andThen(Effect.logDebug("quiet")),
      Effect.provide(Logging.layer(log, stderrIsTTY)),
      Effect.map(() => written)
    )

  it.effect("is JSON away from a terminal and pretty with colours on one", () =>
    Effect.gen(function* () {
      vi.stubEnv("NO_COLOR", "")
      assert.match(yield* say(false), /^\{/)
      written = ""
      assert.include(yield* say(true), "\u001b[32mINFO")
    })
  )

  it.effect("has no colours with NO_COLOR", () =>
    Effect.gen(function* () {
      vi.stubEnv("NO_COLOR", "1")
      assert.notInclude(yield* say(true), "\u001b")
    })
  )

  it.effect("leaves out what is below the level, and all with None", () =>
    Effect.gen(function* () {
      assert.notInclude(yield* say(false), "quiet")
      written = ""
      assert.strictEqual(yield* say(false, { ...unset, level: "None" }), "")
    })
  )
})

it.effect("outlives a standard error that throws", () =>
  Effect.gen(function* () {
    vi.mocked(process.stderr.write).mockImplementation(() => {
      throw new Error("EPIPE")
    })
    yield* Effect.logInfo("into the void")
  }).pipe(Effect.provide(json))
)

const child = `
  const { Effect, Option } = await import("effect")
  const Logging = await import(${JSON.stringify(new URL("../../src/layers/Logging.ts", import.meta.url).href)})
  process.stdin.once("data", async () => {
    const burst = Effect.forEach(Array.from({ length: 200 }), () => Effect.logError("x".repeat(1000)), { discard: true })
    await Effect.runPromise(burst.pipe(Effect.provide(Logging.layer({ level: "Info", format: Option.none() }, false))))
    setTimeout(() => { console.log("alive"); process.exit(0) }, 50)
  })
  console.log("ready")
`

it("keeps the process alive when the reader of standard error has gone away", async () => {
  const process_ = spawn(process.execPath, ["--input-type=module", "-e", child], {
    cwd: new URL("../..", import.meta.url),
    stdio: ["pipe", "pipe", "pipe"]
  })
  const code = await new Promise((resolve) => {
    process_.on("close", resolve)
    process_.stdout.on("data", (chunk) => {
      if (!String(chunk).includes("ready")) return
      process_.stderr.destroy()
      process_.stderr.once("close", () => process_.stdin.write("go"))
    })
  })
  expect(code).toBe(0)
})
