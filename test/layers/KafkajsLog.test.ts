import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger, References } from "effect"
import { makeLog } from "../../src/layers/KafkajsLog.ts"

const entry = (message: string) => ({
  namespace: "Connection",
  level: 1,
  label: "ERROR",
  log: { timestamp: "", logger: "kafkajs", message, broker: "one:9092", stack: "not for the log", clientId: "c" }
})

/** What is logged, and how: level, message, annotations. */
const recorded = Effect.fnUntraced(function* (entries: ReadonlyArray<string>, isMuted = () => false) {
  const lines: Array<{ level: string; message: unknown; annotations: unknown }> = []
  const logger = Logger.make<unknown, void>(({ fiber, logLevel, message }) => {
    lines.push({ level: logLevel, message, annotations: fiber.getRef(References.CurrentLogAnnotations) })
  })
  const log = yield* makeLog.pipe(
    Effect.provide(Logger.layer([logger])),
    Effect.provideService(References.MinimumLogLevel, "Debug")
  )
  const write = log(isMuted)(2)
  for (const message of entries) write(entry(message))
  yield* Effect.yieldNow
  return lines
})

describe("the log of kafkajs", () => {
  it.effect("goes into ours at debug, since an outage makes it say the same for hours, with the broker's name", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* recorded(["Connection timeout"]), [
        {
          level: "Debug",
          message: ["kafkajs: Connection timeout"],
          annotations: { namespace: "Connection", broker: "one:9092" }
        }
      ])
    })
  )

  it.effect("says nothing of a client that was given up", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* recorded(["the client was given up"], () => true), [])
    })
  )
})
