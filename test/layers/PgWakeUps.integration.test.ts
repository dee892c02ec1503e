/** Wake-ups by LISTEN on PostgreSQL: with the commit only, over a lost connection, and gone with their scope. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Layer, Redacted, Schedule, Scope } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as Database from "../../src/layers/Database.ts"
import * as PgIntegrationOutbox from "../../src/layers/PgIntegrationOutbox.ts"
import * as PgRealtimeOutbox from "../../src/layers/PgRealtimeOutbox.ts"
import * as PgWakeUps from "../../src/layers/PgWakeUps.ts"
import { IntegrationOutbox } from "../../src/services/IntegrationOutbox.ts"
import { RealtimeOutbox } from "../../src/services/RealtimeOutbox.ts"
import { WakeUps } from "../../src/services/WakeUps.ts"
import { toMessage, toSignal } from "../contract/DeliverySubject.ts"
import * as Network from "../servers/Network.ts"
import { logLines } from "../support/LogLines.ts"
import { freshDatabase, migratedDatabase } from "../support/postgres.ts"

type Services = SqlClient | IntegrationOutbox | RealtimeOutbox | WakeUps

/** On a database of its own, listening at `listenUrl` or there. */
const withWakeUps = <A, E>(body: Effect.Effect<A, E, Services | Scope.Scope>, listenUrl?: Redacted.Redacted) =>
  Effect.flatMap(migratedDatabase, ({ url, worker }) =>
    Effect.scoped(body).pipe(
      Effect.provide(
        Layer.mergeAll(
          PgIntegrationOutbox.layer({ keyPolicy: "park" }),
          PgRealtimeOutbox.layer,
          PgWakeUps.layer(listenUrl ?? url)
        ).pipe(Layer.provideMerge(Database.layer(worker)))
      )
    )
  )

/** Both dispatchers are woken once when listening begins. */
const listening = Effect.flatMap(WakeUps, (wakeUps) => Effect.all([wakeUps.awaitEvents, wakeUps.awaitSignals]))

const appendEvent = (n: number) => Effect.flatMap(IntegrationOutbox, (outbox) => outbox.append([toMessage({ n })]))
const appendPush = (n: number) => Effect.flatMap(RealtimeOutbox, (outbox) => outbox.append([toSignal({ n })]))

/** A push is written and its wake-up awaited: those of events that came before have arrived then too. */
const marker = Effect.flatMap(WakeUps, (wakeUps) => Effect.andThen(appendPush(1), wakeUps.awaitSignals))

const listeners = Effect.flatMap(
  SqlClient,
  (sql) =>
    sql<{ pid: number }>`select pid from pg_stat_activity
    where datname = current_database() and application_name = ${PgWakeUps.applicationName}`
)

const killListener = Effect.flatMap(
  SqlClient,
  (sql) =>
    sql`select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where datname = current_database() and application_name = ${PgWakeUps.applicationName}`
)

// Nobody listens on the discard port.
const nobody = Redacted.make("postgres://nobody@127.0.0.1:9/none")

describe("PgWakeUps", () => {
  it("keeps its channels, which other instances of other versions use (golden)", () => {
    assert.deepStrictEqual(PgWakeUps.channels, {
      events: "conference_reaper_outbox",
      signals: "conference_reaper_realtime"
    })
  })

  it.live("wakes with the commit, neither before it nor after a rollback (X1)", () =>
    withWakeUps(
      Effect.gen(function* () {
        yield* listening
        const { awaitEvents } = yield* WakeUps
        const sql = yield* SqlClient
        const woken = yield* Effect.forkChild(awaitEvents)
        // Begun here, since a fiber that is forked inside the transaction is part of it.
        const written = yield* Deferred.make<void>()
        const outside = yield* Effect.forkChild(Effect.andThen(Deferred.await(written), marker))
        yield* Effect.flip(sql.withTransaction(Effect.andThen(appendEvent(1), Effect.fail("stop"))))
        yield* marker
        assert.isUndefined(woken.pollUnsafe())
        yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* appendEvent(2)
            yield* Deferred.succeed(written, undefined)
            yield* Fiber.join(outside)
            assert.isUndefined(woken.pollUnsafe())
          })
        )
        yield* Fiber.join(woken)
      })
    )
  )

  it.live("remembers wake-ups that come while nobody waits, several as one", () =>
    withWakeUps(
      Effect.gen(function* () {
        yield* listening
        const { awaitEvents } = yield* WakeUps
        for (const n of [1, 2, 3]) yield* appendEvent(n)
        yield* marker
        yield* awaitEvents
        const again = yield* Effect.forkChild(awaitEvents)
        yield* marker
        assert.isUndefined(again.pollUnsafe())
      })
    )
  )

  it.live("listens again when its connection was lost, wakes then, and says each outage once (T6)", () =>
    Effect.gen(function* () {
      const log = yield* logLines
      yield* withWakeUps(
        Effect.gen(function* () {
          for (const _ of [1, 2]) {
            yield* listening
            assert.strictEqual(yield* log.next, "Info listening for new outbox rows")
            yield* killListener
            assert.match(yield* log.next, /^Warn not listening for new outbox rows/)
          }
          yield* listening
          yield* log.next
          assert.strictEqual((yield* listeners).length, 1)
          assert.strictEqual(yield* log.left, 0)
        })
      ).pipe(Effect.provide(log.layer))
    })
  )

  it.live("says once that it polls only where LISTEN is taken and nothing arrives", () =>
    Effect.gen(function* () {
      const log = yield* logLines
      const { url } = yield* freshDatabase
      yield* withWakeUps(log.next, url).pipe(
        Effect.tap((line) => Effect.sync(() => assert.match(line, /^Warn LISTEN does not work here, polling only/))),
        Effect.provide(log.layer)
      )
    })
  )

  it.live("closes its connection at once with its scope", () =>
    Effect.gen(function* () {
      const { url, worker } = yield* migratedDatabase
      yield* Effect.gen(function* () {
        const scope = yield* Scope.make()
        const context = yield* Layer.buildWithScope(PgWakeUps.layer(url), scope)
        yield* Effect.provide(listening, context)
        assert.strictEqual((yield* listeners).length, 1)
        const [closing] = yield* Effect.timed(Scope.close(scope, Exit.void))
        assert.isBelow(Duration.toMillis(closing), 900)
        // The server takes its time to notice.
        yield* listeners.pipe(
          Effect.repeat({ until: (rows) => rows.length === 0, schedule: Schedule.spaced("5 millis") })
        )
      }).pipe(Effect.provide(Database.layer(worker)))
    })
  )

  it.live("ends within its second where the network has stopped to carry (L5)", () =>
    Effect.gen(function* () {
      const { url, worker } = yield* migratedDatabase
      const network = yield* Network.before(Redacted.value(url))
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient
        const scope = yield* Scope.make()
        const context = yield* Layer.buildWithScope(PgWakeUps.layer(Redacted.make(network.url)), scope)
        yield* Effect.provide(listening, context)
        const cut = { applicationName: PgWakeUps.applicationName }
        yield* Effect.all([network.cutAt({ text: "cut now", lost: "its answer", cut }), sql`select 'cut now'`], {
          concurrency: "unbounded"
        })
        const [closing] = yield* Effect.timed(Scope.close(scope, Exit.void))
        assert.isBelow(Duration.toMillis(closing), 1900)
      }).pipe(Effect.provide(Database.layer({ ...worker, url: Redacted.make(network.url) })))
    })
  )

  it.live("ends at once while the server is away", () =>
    Effect.gen(function* () {
      const { worker } = yield* migratedDatabase
      const log = yield* logLines
      yield* Effect.gen(function* () {
        const scope = yield* Scope.make()
        yield* Layer.buildWithScope(PgWakeUps.layer(nobody), scope)
        assert.match(yield* log.next, /^Warn not listening/)
        const [closing] = yield* Effect.timed(Scope.close(scope, Exit.void))
        assert.isBelow(Duration.toMillis(closing), 900)
      }).pipe(Effect.provide(Layer.merge(Database.layer(worker), log.layer)))
    })
  )
})
