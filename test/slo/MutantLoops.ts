/** Loops that tick at other moments than L1 says. */
import { Clock, Duration, Effect, Schedule } from "effect"
import * as Cycle from "../../src/program/Cycle.ts"
import { everyInterval } from "../../src/program/Reaper.ts"
import { Liveness } from "../../src/services/Liveness.ts"
import { ReaperOptions } from "../../src/services/ReaperOptions.ts"
import type { Build } from "./Build.ts"
import type { Clause } from "./Clause.ts"

const tick = Effect.gen(function* () {
  yield* (yield* Liveness).beat
  return yield* Cycle.run
})

const interval = Effect.map(ReaperOptions, (options) => options.pollingInterval)

const sleepTo = Effect.fnUntraced(function* (moment: number) {
  yield* Effect.sleep(Duration.millis(Math.max(0, moment - (yield* Clock.currentTimeMillis))))
})

interface Loop {
  readonly loop: Build["loop"]
  readonly breaks: Clause
  readonly breaksPlain?: true
}

export const loops: Readonly<Record<string, Loop>> = {
  "drifts by the time of each cycle": {
    loop: Effect.flatMap(interval, (pause) => Effect.repeat(tick, Schedule.spaced(pause))),
    breaks: "spacing",
    breaksPlain: true
  },
  "keeps to its first grid after an overrun": {
    loop: Effect.flatMap(interval, (pause) => Effect.repeat(tick, Schedule.fixed(pause))),
    breaks: "spacing"
  },
  "makes up the ticks of an overrun": {
    loop: Effect.gen(function* () {
      const millis = Duration.toMillis(yield* interval)
      const first = yield* Clock.currentTimeMillis
      for (let count = 1; ; count++) {
        yield* tick
        yield* sleepTo(first + count * millis)
      }
    }),
    breaks: "spacing"
  },
  "starts a tick on top of a running one": {
    loop: Effect.flatMap(interval, (pause) =>
      Effect.repeat(Effect.forkChild(tick, { startImmediately: true }), Schedule.spaced(pause))
    ),
    breaks: "one-at-a-time"
  },
  "ends with the first failed cycle": {
    loop: Effect.gen(function* () {
      const ticks = tick.pipe(Effect.filterOrFail(({ outcome }) => outcome !== "failed"))
      return yield* Effect.repeat(ticks, yield* everyInterval(yield* interval))
    }).pipe(Effect.ignore),
    breaks: "spacing"
  }
}
