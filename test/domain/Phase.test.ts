import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import * as Phase from "../../src/domain/Phase.ts"
import { defaults } from "../../src/services/ReaperOptions.ts"

describe("Phase", () => {
  it("names the three phases in the order of a cycle, with what each makes of a session (R1, R2, R3)", () => {
    assert.deepStrictEqual(
      Phase.all.map(({ window, ...phase }) => ({ ...phase, window: Duration.toMillis(window(defaults)) })),
      [
        {
          name: "empty-room",
          from: "Active",
          since: "lastActivityAt",
          requiresEmpty: true,
          window: 90_000,
          to: "Ended",
          endReason: "EmptyTimeout",
          outcome: "empty_timeout"
        },
        {
          name: "provision-timeout",
          from: "Provisioning",
          since: "createdAt",
          requiresEmpty: false,
          window: 120_000,
          to: "Failed",
          endReason: "Error",
          outcome: "provision_failed"
        },
        {
          name: "stale-live",
          from: "Active",
          since: "lastActivityAt",
          requiresEmpty: false,
          window: 14_400_000,
          to: "Ended",
          endReason: "Timeout",
          outcome: "stale_timeout"
        }
      ]
    )
  })
})
