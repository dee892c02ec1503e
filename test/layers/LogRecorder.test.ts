import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger, References } from "effect"
import { ConferenceId, RecordingId } from "../../src/domain/ConferenceSession.ts"
import * as LogRecorder from "../../src/layers/LogRecorder.ts"
import { Recorder } from "../../src/services/Recorder.ts"

const recordingId = RecordingId.make("3f0c0a52-6a5e-4b7e-9a5e-000000000001")
const conferenceId = ConferenceId.make("3f0c0a52-6a5e-4b7e-9a5e-000000000002")

describe("LogRecorder", () => {
  for (const [name, layer, result, level] of [
    ["no recorder is configured", LogRecorder.notConfigured, "not-configured", "Info"],
    ["conference calls are disabled", LogRecorder.disabled, "disabled", "Debug"]
  ] as const) {
    it.effect(`sends nothing and says so in one ${level} line when ${name} (R10)`, () =>
      Effect.gen(function* () {
        const lines: Array<unknown> = []
        const logger = Logger.make(({ logLevel, fiber }) => {
          lines.push([logLevel, fiber.getRef(References.CurrentLogAnnotations)])
        })
        const { requestStop } = yield* Recorder.pipe(Effect.provide(layer))
        const told = yield* requestStop({ recordingId, externalRef: null, conferenceId, reason: "Timeout" }).pipe(
          Effect.provide(Logger.layer([logger])),
          Effect.provideService(References.MinimumLogLevel, "Debug")
        )
        assert.strictEqual(told, result)
        assert.deepStrictEqual(lines, [[level, { recordingId, conferenceId }]])
      })
    )
  }
})
