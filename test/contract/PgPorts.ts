/** The PostgreSQL layers under test, on a new database, with the harness beside them. */
import { Duration, Effect, Layer } from "effect"
import * as Database from "../../src/layers/Database.ts"
import * as PgConferenceRepository from "../../src/layers/PgConferenceRepository.ts"
import * as PgIntegrationOutbox from "../../src/layers/PgIntegrationOutbox.ts"
import * as PgRealtimeOutbox from "../../src/layers/PgRealtimeOutbox.ts"
import * as PgReaperJournal from "../../src/layers/PgReaperJournal.ts"
import * as PgRunLock from "../../src/layers/PgRunLock.ts"
import * as PgTransaction from "../../src/layers/PgTransaction.ts"
import { defaults, ReaperOptions } from "../../src/services/ReaperOptions.ts"
import { migratedDatabase } from "../support/postgres.ts"
import * as PgHarness from "./PgHarness.ts"

// Long enough for a slow machine between two statements, short enough to wait for its end once.
const options = { ...defaults, lockTtl: Duration.seconds(3) }

/** For suites with the real clock: a database's answer does not wait for a test's. */
export const withKeyPolicy = (keyPolicy: "park" | "block") =>
  Layer.unwrap(
    Effect.map(migratedDatabase, ({ url, worker }) =>
      Layer.mergeAll(
        PgTransaction.layer,
        PgConferenceRepository.layer,
        PgIntegrationOutbox.layer({ keyPolicy }),
        PgRealtimeOutbox.layer,
        PgReaperJournal.layer,
        PgRunLock.layer(worker),
        PgHarness.layer(url)
      ).pipe(Layer.provide(Database.layer(worker)), Layer.provide(Layer.succeed(ReaperOptions, options)))
    )
  )

export const layer = withKeyPolicy("park")
