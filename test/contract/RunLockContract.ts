/** One runner at a time, and nobody is locked out by a runner that is gone (L2, L3). */
import { assert, type Vitest } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Option, Scope } from "effect"
import * as Instant from "../../src/domain/Instant.ts"
import { RunLock } from "../../src/services/RunLock.ts"
import { onEmptyTables, type Ports } from "./Fixtures.ts"
import { Harness } from "./Harness.ts"

const acquire = Effect.flatMap(RunLock, (lock) => lock.tryAcquire)
/** Whether the lock could be had just now. */
const isFree = Effect.scoped(Effect.map(acquire, Option.isSome))
const held = Effect.flatMap(acquire, (lock) => Effect.orDie(Effect.fromOption(lock)))

export const runLockContract = (it: Vitest.MethodsNonLive<Ports>): void => {
  it.effect("is given to one at a time, and nobody waits for it (L2)", () =>
    Effect.gen(function* () {
      yield* held
      assert.isFalse(yield* isFree)
      assert.isFalse(yield* isFree)
    }).pipe(Effect.scoped, onEmptyTables)
  )

  it.effect("is free again at the end of its scope (L2)", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      yield* Scope.provide(held, scope)
      assert.isFalse(yield* isFree)
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(yield* isFree)
      assert.isTrue(yield* isFree)
    }).pipe(onEmptyTables)
  )

  it.effect("is free again when its holder is interrupted (L5)", () =>
    Effect.gen(function* () {
      const taken = yield* Deferred.make<void>()
      const holder = held.pipe(
        Effect.andThen(Deferred.succeed(taken, undefined)),
        Effect.andThen(Effect.never),
        Effect.scoped
      )
      const fiber = yield* Effect.forkChild(holder)
      yield* Deferred.await(taken)
      assert.isFalse(yield* isFree)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(yield* isFree)
    }).pipe(onEmptyTables)
  )

  it.effect("does not take the lock away from its holder when another asks and leaves (L2)", () =>
    Effect.gen(function* () {
      const lock = yield* held
      assert.isFalse(yield* isFree)
      yield* lock.confirm
      assert.isFalse(yield* isFree)
    }).pipe(Effect.scoped, onEmptyTables)
  )

  it.effect("tells the database's time of the grant (L7)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const earliest = yield* harness.databaseTime
      const lock = yield* held
      const latest = yield* harness.databaseTime
      assert.isTrue(earliest <= lock.databaseTime && lock.databaseTime <= latest, Instant.format(lock.databaseTime))
    }).pipe(Effect.scoped, onEmptyTables)
  )

  it.effect("confirms while it is held, as often as asked (L3)", () =>
    Effect.gen(function* () {
      const lock = yield* held
      yield* lock.confirm
      yield* lock.confirm
    }).pipe(Effect.scoped, onEmptyTables)
  )

  it.effect("is lost with its connection: the holder hears of it, another can have it (L3)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const lock = yield* held
      yield* harness.killConnections
      assert.strictEqual((yield* Effect.flip(lock.confirm))._tag, "LockLost")
      const next = yield* held
      yield* next.confirm
      assert.strictEqual((yield* Effect.flip(lock.confirm))._tag, "LockLost")
    }).pipe(Effect.scoped, onEmptyTables)
  )

  it.effect("is not given back twice: a lost holder's end leaves the next holder alone (L3)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const scope = yield* Scope.make()
      yield* Scope.provide(held, scope)
      yield* harness.killConnections
      const next = yield* held
      yield* Scope.close(scope, Exit.void)
      yield* next.confirm
      assert.isFalse(yield* isFree)
    }).pipe(Effect.scoped, onEmptyTables)
  )

  it.effect("is lost after LockTtl in which the holder did nothing (L3)", () =>
    Effect.gen(function* () {
      const harness = yield* Harness
      const lock = yield* held
      yield* harness.passLockTtl
      assert.strictEqual((yield* Effect.flip(lock.confirm))._tag, "LockLost")
      assert.isTrue(yield* isFree)
    }).pipe(Effect.scoped, onEmptyTables)
  )
}
