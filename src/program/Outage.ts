/**
 * Says once that something holds up work and once that it is over, however often it is tried in between: an outage of a
 * day must not fill the log. Nothing of it can fail, also when the logger is what is broken.
 */
import { Clock, Effect } from "effect"

export interface Trouble {
  /** The receiver is away, or does not let us in; or our own database is what fails. */
  readonly kind: "unavailable" | "misconfigured" | "database"
  readonly reason: string
}

export interface Outage {
  readonly failed: (trouble: Trouble) => Effect.Effect<void>
  readonly over: Effect.Effect<void>
}

/** `what` is held up; `remedy` says what people can do about a wrong configuration. */
export const make = (what: string, remedy: string): Outage => {
  let current: { readonly since: bigint; readonly said: Set<Trouble["kind"]>; failures: number } | undefined

  const begin = ({ kind, reason }: Trouble) =>
    kind === "misconfigured"
      ? Effect.logError(`${what} is held up: ${remedy}`).pipe(Effect.annotateLogs({ kind, reason }))
      : Effect.logWarning(`${what} is held up`).pipe(Effect.annotateLogs({ kind, reason }))

  return {
    failed: Effect.fnUntraced(function* (trouble) {
      current ??= { since: yield* Clock.monotonicTimeNanos, said: new Set(), failures: 0 }
      current.failures += 1
      if (current.said.has(trouble.kind)) return
      current.said.add(trouble.kind)
      yield* Effect.ignoreCause(begin(trouble))
    }),
    over: Effect.gen(function* () {
      if (current === undefined) return
      const { since, failures } = current
      current = undefined
      const seconds = Number(((yield* Clock.monotonicTimeNanos) - since) / 1_000_000n) / 1000
      yield* Effect.ignoreCause(Effect.logInfo(`${what} goes on`).pipe(Effect.annotateLogs({ seconds, failures })))
    })
  }
}
