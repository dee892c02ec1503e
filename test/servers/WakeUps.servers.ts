/** Wake-ups behind PgBouncer in transaction mode, where LISTEN is taken and nothing arrives (X1, DATABASE_LISTEN_URL). */
import { assert, describe, it, vi } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Database from "../../src/layers/Database.ts"
import * as PgIntegrationOutbox from "../../src/layers/PgIntegrationOutbox.ts"
import * as PgWakeUps from "../../src/layers/PgWakeUps.ts"
import { IntegrationOutbox } from "../../src/services/IntegrationOutbox.ts"
import { WakeUps } from "../../src/services/WakeUps.ts"
import { toMessage } from "../contract/DeliverySubject.ts"
import { logLines } from "../support/LogLines.ts"
import { migratedDatabase } from "../support/postgres.ts"

vi.setConfig({ testTimeout: 60_000 })

describe("wake-ups behind PgBouncer", () => {
  it.live("says that it polls only when it listens through the pooler, and the pool goes on working", () =>
    Effect.gen(function* () {
      const { worker } = yield* migratedDatabase
      const log = yield* logLines
      yield* Effect.gen(function* () {
        assert.match(yield* log.next, /^Warn LISTEN does not work here, polling only/)
        const outbox = yield* IntegrationOutbox
        yield* Effect.forEach(
          Array.from({ length: 100 }, (_, n) => n + 1),
          (n) => outbox.append([toMessage({ n })]),
          { concurrency: 6 }
        )
        assert.strictEqual((yield* outbox.status).pending, 100)
        assert.strictEqual(yield* log.left, 0)
      }).pipe(
        Effect.provide(
          Layer.merge(PgIntegrationOutbox.layer({ keyPolicy: "park" }), PgWakeUps.layer(worker.url)).pipe(
            Layer.provideMerge(Database.layer(worker)),
            Layer.provideMerge(log.layer)
          )
        )
      )
    })
  )

  it.live("wakes when it listens past the pooler", () =>
    Effect.gen(function* () {
      const { url, worker } = yield* migratedDatabase
      yield* Effect.gen(function* () {
        const { awaitEvents } = yield* WakeUps
        const outbox = yield* IntegrationOutbox
        yield* awaitEvents
        yield* outbox.append([toMessage({ n: 1 })])
        yield* awaitEvents
      }).pipe(
        Effect.provide(
          Layer.merge(PgIntegrationOutbox.layer({ keyPolicy: "park" }), PgWakeUps.layer(url)).pipe(
            Layer.provideMerge(Database.layer(worker))
          )
        )
      )
    })
  )
})
