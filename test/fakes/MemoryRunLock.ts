/**
 * The run locks in memory: one holder each, for LockTtl on the virtual clock at the longest (L3). A test makes one busy by
 * taking it in a scope of its own, and takes it away with `lose`.
 */
import { Clock, Context, Duration, Effect, Layer, Option } from "effect"
import * as Instant from "../../src/domain/Instant.ts"
import { type DispatcherLock, OutboxLock, RealtimeLock } from "../../src/services/DispatcherLocks.ts"
import { defaults } from "../../src/services/ReaperOptions.ts"
import { LockLost, RunLock } from "../../src/services/RunLock.ts"
import { MemoryDatabase } from "./MemoryDatabase.ts"

interface LockControl {
  /** The holder's connection is gone: another may take the lock, `confirm` fails. */
  readonly lose: Effect.Effect<void>
  /** Puts the database's clock ahead of the system's; behind it when negative (L7). */
  readonly setDatabaseClockOffset: (offset: Duration.Duration) => Effect.Effect<void>
  readonly setLockTtl: (ttl: Duration.Duration) => Effect.Effect<void>
  readonly databaseTime: Effect.Effect<Instant.Instant>
  readonly isHeld: Effect.Effect<boolean>
}

export class RunLockControl extends Context.Service<RunLockControl, LockControl>()("test/RunLockControl") {}
export class OutboxLockControl extends Context.Service<OutboxLockControl, LockControl>()("test/OutboxLockControl") {}
export class RealtimeLockControl extends Context.Service<RealtimeLockControl, LockControl>()(
  "test/RealtimeLockControl"
) {}

interface Holder {
  readonly until: number
}

const make = Effect.gen(function* () {
  const { faults, onKill } = yield* MemoryDatabase
  let holder: Holder | undefined
  let offset = Duration.zero
  let lockTtl = defaults.lockTtl
  const dropHolder = () => {
    holder = undefined
  }
  onKill(dropHolder)

  const current = Effect.map(Clock.currentTimeMillis, (now) => {
    if (holder !== undefined && holder.until <= now) holder = undefined
    return holder
  })
  const databaseTime = Effect.map(Clock.currentTimeMillis, (now) => Instant.plus(Instant.fromMillis(now), offset))

  const acquire = Effect.gen(function* () {
    yield* faults.hit("lock")
    if ((yield* current) !== undefined) return Option.none()
    const mine: Holder = { until: (yield* Clock.currentTimeMillis) + Duration.toMillis(lockTtl) }
    holder = mine
    const confirm = faults.hit("confirm").pipe(
      Effect.mapError((error) => new LockLost({ reason: error.reason })),
      Effect.andThen(current),
      Effect.flatMap((now) =>
        now === mine ? Effect.void : Effect.fail(new LockLost({ reason: "its transaction has ended" }))
      )
    )
    return Option.some({ mine, held: { databaseTime: yield* databaseTime, confirm } })
  })

  const tryAcquire = Effect.acquireRelease(acquire, (acquired) =>
    Effect.sync(() => {
      if (Option.isSome(acquired) && holder === acquired.value.mine) dropHolder()
    })
  ).pipe(Effect.map(Option.map(({ held }) => held)))

  const control: LockControl = {
    lose: Effect.sync(dropHolder),
    setDatabaseClockOffset: (next) =>
      Effect.sync(() => {
        offset = next
      }),
    setLockTtl: (ttl) =>
      Effect.sync(() => {
        lockTtl = ttl
      }),
    databaseTime,
    isHeld: Effect.map(current, (now) => now !== undefined)
  }
  return { lock: { tryAcquire } satisfies DispatcherLock, control }
})

const layerOf = <L, C>(lockTag: Context.Key<L, DispatcherLock>, controlTag: Context.Key<C, LockControl>) =>
  Layer.effectContext(
    Effect.map(make, ({ lock, control }) => Context.make(lockTag, lock).pipe(Context.add(controlTag, control)))
  )

export const layer = layerOf(RunLock, RunLockControl)
export const outboxLayer = layerOf(OutboxLock, OutboxLockControl)
export const realtimeLayer = layerOf(RealtimeLock, RealtimeLockControl)
