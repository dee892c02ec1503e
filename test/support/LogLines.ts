/** Log lines as they come, for tests that wait for one. */
import { Effect, Logger, Queue } from "effect"

export const logLines = Effect.gen(function* () {
  const lines = yield* Queue.unbounded<string>()
  return {
    layer: Logger.layer([
      Logger.make(({ logLevel, message }) => {
        Queue.offerUnsafe(lines, `${logLevel} ${[message].flat().join(" ")}`)
      })
    ]),
    next: Queue.take(lines),
    /** How many have come that nobody took. */
    left: Queue.size(lines)
  }
})
