/** Loops that tick at other moments than L1 says. */
import { Clock, Duration, Effect, Schedule } from "effect"
import * as Cycle from "../../src/program/Cycle.ts"
import { Liveness } from "../../src/services/Liveness.ts"
import { ReaperOptions } from "../../src/services/ReaperOptions.ts"

const tick = Effect.gen(function* () {
  yield* (yield* Liveness).beat
  return yield* Cycle.run
})

const interval = Effect.map(ReaperOptions, (options) => options.pollingInterval)

const sleepTo = Effect.fnUntraced(function* (moment: number) {
  yield* Effect.sleep(Duration.millis(Math.max(0, moment - (yield* Clock.currentTimeMillis))))
})

export const loops = {
  "drifts by the time of each cycle": Effect.flatMap(interval, (pause) => Effect.repeat(tick, Schedule.spaced(pause))),
  "keeps to its first grid after an overrun": Effect.flatMap(interval, (pause) =>
    Effect.repeat(tick, Schedule.fixed(pause))
  ),
  "makes up the ticks of an overrun": Effect.gen(function* () {
    const millis = Duration.toMillis(yield* interval)
    const first = yield* Clock.currentTimeMillis
    for (let count = 1; ; count++) {
      yield* tick
      yield* sleepTo(first + count * millis)
    }
  }),
  "starts a tick on top of a running cycle": Effect.flatMap(interval, (pause) =>
    Effect.repeat(Effect.forkChild(tick, { startImmediately: true }), Schedule.spaced(pause))
  ),
  "ends with the first failed cycle": Effect.flatMap(interval, (pause) =>
    Effect.repeat(
      Effect.filterOrFail(tick, ({ outcome }) => outcome !== "failed"),
      Schedule.fixed(pause)
    )
  ).pipe(Effect.ignore)
}
