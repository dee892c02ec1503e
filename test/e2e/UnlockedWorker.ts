/** The worker with a run lock that everybody gets: what is left of safety are row locks, guard and unique keys (T2, T3, W6). */
import { NodeRuntime } from "@effect/platform-node"
import { Effect, Layer, Option, Redacted } from "effect"
import * as Logging from "../../src/layers/Logging.ts"
import * as Production from "../../src/layers/Production.ts"
import * as HttpApi from "../../src/program/HttpApi.ts"
import * as Reaper from "../../src/program/Reaper.ts"
import { CycleClock } from "../../src/services/CycleClock.ts"
import * as DeliveryHealth from "../../src/services/DeliveryHealth.ts"
import { RunLock } from "../../src/services/RunLock.ts"
import * as Settings from "../../src/services/Settings.ts"

const alwaysGranted = Layer.effect(
  RunLock,
  Effect.map(CycleClock, (clock) =>
    RunLock.of({
      tryAcquire: Effect.map(clock.asOf, (databaseTime) => Option.some({ databaseTime, confirm: Effect.void }))
    })
  )
)

const worker = Effect.gen(function* () {
  const settings = yield* Effect.fromResult(Settings.parse(process.env, { hostname: "unlocked", pid: process.pid }))
  const { poolSize, preparedStatements } = settings.database
  const url = Option.getOrElse(settings.database.url, () => Redacted.make(""))
  const production = Production.layer(settings, { url, poolSize, preparedStatements })
  // Merged before production, so that its lock is the one in force.
  const layers = HttpApi.layer(settings.http).pipe(
    Layer.provideMerge(Layer.merge(alwaysGranted, DeliveryHealth.layer)),
    Layer.provideMerge(production),
    Layer.provideMerge(Logging.layer(settings.log, false))
  )
  return yield* Effect.provide(Reaper.run, layers)
})

NodeRuntime.runMain(worker)
