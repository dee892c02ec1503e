/** Row locks by name: one owner each, kept until the owner releases all it has. Deadlocks are not looked for. */
import { Deferred, Effect, Latch } from "effect"

interface Owner {
  readonly names: Set<string>
  readonly released: Deferred.Deferred<void>
}

export interface Locks {
  readonly newOwner: () => Owner
  readonly tryTake: (owner: Owner, name: string) => boolean
  readonly isTakenByOther: (owner: Owner, name: string) => boolean
  readonly take: (owner: Owner, name: string) => Effect.Effect<void>
  readonly release: (owner: Owner) => void
  /** Waits until somebody waits for a lock; at once when somebody does. */
  readonly waitSeen: Effect.Effect<void>
}

export const makeLocks = (): Locks => {
  const owners = new Map<string, Owner>()
  const waiting = Latch.makeUnsafe(false)
  let waiters = 0
  const awaitEnd = (owner: Owner) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        waiters += 1
        waiting.openUnsafe()
      }),
      () => Deferred.await(owner.released),
      () =>
        Effect.sync(() => {
          waiters -= 1
          if (waiters === 0) waiting.closeUnsafe()
        })
    )

  const isTakenByOther = (owner: Owner, name: string) => {
    const current = owners.get(name)
    return current !== undefined && current !== owner
  }
  const tryTake = (owner: Owner, name: string) => {
    if (isTakenByOther(owner, name)) return false
    owners.set(name, owner)
    owner.names.add(name)
    return true
  }
  const take = (owner: Owner, name: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (tryTake(owner, name)) return Effect.void
      const current = owners.get(name)
      if (current === undefined) return take(owner, name)
      return Effect.andThen(awaitEnd(current), take(owner, name))
    })

  return {
    newOwner: () => ({ names: new Set(), released: Deferred.makeUnsafe() }),
    tryTake,
    isTakenByOther,
    take,
    waitSeen: waiting.await,
    release: (owner) => {
      for (const name of owner.names) owners.delete(name)
      owner.names.clear()
      Deferred.doneUnsafe(owner.released, Effect.void)
    }
  }
}
