import { createRequire } from "node:module"
import "../../src/layers/KafkajsTimers.ts"
import { describe, expect, it, vi } from "vitest"

const RequestQueue = createRequire(import.meta.url)("kafkajs/src/network/requestQueue/index.js")

const quiet = { debug: () => {}, warn: () => {} }
const queue = () => new RequestQueue({ requestTimeout: 1_000, logger: quiet, clientId: "c", broker: "b" })

const requestOf = (sendRequest: () => void) => ({
  entry: { correlationId: 1, resolve: () => {}, reject: () => {} },
  expectResponse: true,
  sendRequest
})

describe("the request queue of kafkajs", () => {
  it("arms no timer while nothing waits in it", () => {
    const idle = queue()
    idle.checkPendingRequests()
    expect(idle.throttleCheckTimeoutId).toBeNull()
  })

  it("still sends what waits behind a throttle when its time has come", () => {
    vi.useFakeTimers()
    const throttled = queue()
    throttled.maybeThrottle(500)
    const send = vi.fn()
    throttled.push(requestOf(send))
    vi.advanceTimersByTime(499)
    expect(send).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(send).toHaveBeenCalledOnce()
    expect(throttled.throttleCheckTimeoutId).toBeNull()
    vi.useRealTimers()
  })
})
