/** The program's ports on a new PostgreSQL database, with the harness and the pool beside them. */
import { Effect, Layer } from "effect"
import * as Database from "../../src/layers/Database.ts"
import * as PgConferenceRepository from "../../src/layers/PgConferenceRepository.ts"
import * as PgIntegrationOutbox from "../../src/layers/PgIntegrationOutbox.ts"
import * as PgRealtimeOutbox from "../../src/layers/PgRealtimeOutbox.ts"
import * as PgReaperJournal from "../../src/layers/PgReaperJournal.ts"
import * as PgRunLock from "../../src/layers/PgRunLock.ts"
import * as PgTransaction from "../../src/layers/PgTransaction.ts"
import { type Options, ReaperOptions } from "../../src/services/ReaperOptions.ts"
import { migratedDatabase } from "../support/postgres.ts"
import * as PgHarness from "./PgHarness.ts"

/** For suites with the real clock: a database's answer does not wait for a test's. */
export const ports = Layer.unwrap(
  Effect.map(migratedDatabase, ({ url, worker }) =>
    Layer.mergeAll(
      PgTransaction.layer,
      PgConferenceRepository.layer,
      PgIntegrationOutbox.layer({ keyPolicy: "park" }),
      PgRealtimeOutbox.layer,
      PgReaperJournal.layer,
      PgRunLock.layer(worker),
      PgHarness.layer(url)
    ).pipe(Layer.provideMerge(Database.layer(worker)))
  )
)

/** The same with time limits of its own: the layers read them when they are built. */
export const portsWith = (options: Options) => Layer.provide(ports, Layer.succeed(ReaperOptions, options))
