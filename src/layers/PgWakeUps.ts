/**
 * Wake-ups by LISTEN, on a connection of its own. A signal saves a dispatcher its wait and is nothing to rely on: while the
 * connection is lost, and where LISTEN does not work (a pooler in transaction mode), no signal comes and the dispatchers
 * poll. Signals that come while nobody waits are remembered as one.
 */
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Cause, Deferred, Duration, Effect, Fiber, Layer, Queue, type Redacted, Schema, Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { WakeUps } from "../services/WakeUps.ts"
import { clientConfig } from "./Database.ts"
import { storeUnavailable } from "./PgError.ts"

/** Fixed for as long as any instance of an older version may run. */
export const channels = { events: "conference_reaper_outbox", signals: "conference_reaper_realtime" } as const

export const applicationName = "conference-room-reaper listen"

/** Sent to oneself to see whether notifications arrive at all; no signal to anybody. */
const probe = "probe"

const answerLimit = "5 seconds"
const arrivalLimit = "2 seconds"
const livenessInterval = "1 minute"
// LISTEN may come to work without a restart, when a pooler is taken out of the way.
const deafPause = Duration.minutes(15)
const longestPause = Duration.seconds(30)

/** LISTEN was taken, but no notification arrives. */
class Deaf extends Schema.TaggedError<Deaf>()("Deaf", {}) {}

class NoAnswer extends Schema.TaggedError<NoAnswer>()("NoAnswer", {}) {}

const inTime = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.timeoutOrElse(effect, { duration: answerLimit, orElse: () => Effect.fail(new NoAnswer()) })

// UNLISTEN would wait for ever on a dead link, so the connection is closed in a fiber of its own.
const withOwnScope = <A, E, R>(
  use: Effect.Effect<A, E, R | Scope.Scope>
): Effect.Effect<A, E, Exclude<R, Scope.Scope>> =>
  Effect.acquireUseRelease(
    Scope.make(),
    (scope) => Scope.provide(use, scope),
    (scope, exit) =>
      Effect.forkDetach(Scope.close(scope, exit), { startImmediately: true }).pipe(
        Effect.flatMap((fiber) => Effect.timeoutOption(Fiber.await(fiber), "1 second"))
      )
  )

interface Signals {
  readonly events: Queue.Queue<void>
  readonly signals: Queue.Queue<void>
}

/** Listens until the connection is lost or turns out to be deaf; it has no other end. */
const listen = Effect.fnUntraced(function* (config: PgConnection.Config, to: Signals, onHearing: Effect.Effect<void>) {
  // Of the pool that the rows are written with: a probe by the listening connection itself would come back to it through
  // a pooler too, with its own answer.
  const sql = yield* SqlClient
  const connection = yield* PgConnection.make(config)
  const session = yield* connection.pin
  const heard = yield* Deferred.make<void>()
  const forward = (notifications: Queue.Dequeue<PgConnection.Notification, SqlError>, signal: Queue.Queue<void>) =>
    Queue.take(notifications).pipe(
      Effect.tap(Deferred.succeed(heard, undefined)),
      Effect.flatMap(({ payload }) => (payload === probe ? Effect.void : Queue.offer(signal, undefined))),
      Effect.forever
    )
  const events = yield* inTime(session.listen(channels.events))
  const signals = yield* inTime(session.listen(channels.signals))
  const tryHearing = inTime(sql`select pg_notify(${channels.events}, ${probe})`).pipe(
    Effect.andThen(
      Effect.timeoutOrElse(Deferred.await(heard), { duration: arrivalLimit, orElse: () => Effect.fail(new Deaf()) })
    )
  )
  const stayAlive = Effect.forever(Effect.delay(inTime(session.query("select 1")), livenessInterval))
  return yield* Effect.raceAllFirst([
    forward(events, to.events),
    forward(signals, to.signals),
    tryHearing.pipe(Effect.andThen(onHearing), Effect.andThen(stayAlive))
  ])
}, Effect.withTracerEnabled(false))

const reasonOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  if (isSqlError(error)) return storeUnavailable("listen")(error).reason
  return error instanceof NoAnswer ? "no answer in time" : Cause.pretty(cause)
}

/** What the log was told last, so that an outage is told once. */
type State = "starting" | "listening" | "deaf" | "lost"

const run = (config: PgConnection.Config, to: Signals) => {
  let state: State = "starting"
  let attempts = 0
  const enter = (next: State, say: Effect.Effect<void>) =>
    Effect.suspend(() => {
      if (state === next) return Effect.void
      state = next
      return say
    })

  // Rows may have come while nobody listened.
  const onHearing = enter("listening", Effect.logInfo("listening for new outbox rows")).pipe(
    Effect.andThen(Effect.all([Queue.offer(to.events, undefined), Queue.offer(to.signals, undefined)])),
    Effect.andThen(
      Effect.sync(() => {
        attempts = 0
      })
    )
  )

  const afterEnd = (cause: Cause.Cause<unknown>) => {
    if (Cause.squash(cause) instanceof Deaf) {
      return enter(
        "deaf",
        Effect.logWarning("LISTEN does not work here, polling only; a direct DATABASE_LISTEN_URL mends it")
      ).pipe(Effect.as(deafPause))
    }
    const pause = Duration.min(Duration.seconds(2 ** Math.min(attempts++, 10)), longestPause)
    return enter(
      "lost",
      Effect.logWarning("not listening for new outbox rows, polling until the connection is back").pipe(
        Effect.annotateLogs({ exception: reasonOf(cause) })
      )
    ).pipe(Effect.as(pause))
  }

  return withOwnScope(listen(config, to, onHearing)).pipe(
    Effect.catchCause(afterEnd),
    Effect.flatMap(Effect.sleep),
    Effect.forever
  )
}

export const layer = (listenUrl: Redacted.Redacted) =>
  Layer.effect(
    WakeUps,
    Effect.gen(function* () {
      // Named statements would not survive a pooler, and the probe has to get as far as LISTEN there.
      const config = clientConfig({ url: listenUrl, poolSize: 1, preparedStatements: false }, applicationName)
      const to = { events: yield* Queue.dropping<void>(1), signals: yield* Queue.dropping<void>(1) }
      yield* Effect.forkScoped(run(config, to))
      return WakeUps.of({ awaitEvents: Queue.take(to.events), awaitSignals: Queue.take(to.signals) })
    })
  )
