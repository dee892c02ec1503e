/** What the start log says of the addresses and of what is switched off (M). */
import { it } from "@effect/vitest"
import { Effect, Logger, Result } from "effect"
import { describe, expect } from "vitest"
import { logStart, works } from "../../src/program/commands/StartLog.ts"
import * as Settings from "../../src/services/Settings.ts"

const said = (environment: Settings.Environment) => {
  const lines: Array<string> = []
  const settings = Result.getOrThrow(Settings.parse(environment, { hostname: "box", pid: 7 }))
  const keep = Logger.make<unknown, void>(({ message }) => {
    lines.push(String(message))
  })
  return logStart(settings, "PostgreSQL at h/x", works).pipe(Effect.provide(Logger.layer([keep])), Effect.as(lines))
}

describe("the start log", () => {
  it.effect.each([
    ["0.0.0.0", "http://localhost:9790"],
    ["::", "http://localhost:9790"],
    ["127.0.0.1", "http://127.0.0.1:9790"],
    ["reaper.example", "http://reaper.example:9790"],
    ["::1", "http://[::1]:9790"],
    ["::ffff:10.0.0.1", "http://[::ffff:10.0.0.1]:9790"]
  ] as const)("names URLs that can be opened with HTTP_HOST=%s: %s", ([host, origin]) =>
    Effect.gen(function* () {
      expect(yield* said({ HTTP_HOST: host, HTTP_PORT: "9790" })).toContain(
        `health: ${origin}/health/live and ${origin}/health/ready, metrics: ${origin}/metrics`
      )
    })
  )

  const OTEL_EXPORTER_OTLP_ENDPOINT = "http://collector:4318"
  it.effect.each([
    [{}, ["OTLP is off (OTEL_EXPORTER_OTLP_ENDPOINT is not set): traces and metrics are not sent"]],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT }, []],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SDK_DISABLED: "true" },
      ["OTLP is off (OTEL_SDK_DISABLED is true): traces and metrics are not sent"]
    ],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_METRICS_EXPORTER: "none" },
      ["OTLP is off for metrics (OTEL_METRICS_EXPORTER is none): they are not sent"]
    ]
  ] as const)("gives the true reason why OTLP is off with %j: %j", ([environment, expected]) =>
    Effect.gen(function* () {
      expect((yield* said(environment)).filter((line) => line.includes("OTLP"))).toEqual(expected)
    })
  )
})
