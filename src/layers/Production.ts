/** The only wiring: every port with its technology. */
import { Layer, Option } from "effect"
import * as Metrics from "../program/Metrics.ts"
import * as RecorderSignals from "../program/RecorderSignals.ts"
import * as Liveness from "../services/Liveness.ts"
import { ReaperOptions } from "../services/ReaperOptions.ts"
import type { Settings } from "../services/Settings.ts"
import * as Database from "./Database.ts"
import * as HttpRecorder from "./HttpRecorder.ts"
import * as LogRecorder from "./LogRecorder.ts"
import * as PgConferenceRepository from "./PgConferenceRepository.ts"
import * as PgIntegrationOutbox from "./PgIntegrationOutbox.ts"
import * as PgRealtimeOutbox from "./PgRealtimeOutbox.ts"
import * as PgReaperJournal from "./PgReaperJournal.ts"
import * as PgRunLock from "./PgRunLock.ts"
import * as PgTransaction from "./PgTransaction.ts"
import * as SystemCycleClock from "./SystemCycleClock.ts"

const recorder = (settings: Settings) =>
  settings.callsEnabled
    ? Option.match(settings.recorder, {
        onNone: () => LogRecorder.notConfigured,
        onSome: ({ url, secret }) => HttpRecorder.layer({ url: new URL(url), secret })
      })
    : LogRecorder.disabled

/** Everything that a cycle needs, on the database given. */
export const layer = (settings: Settings, database: Database.DatabaseConfig) =>
  Layer.mergeAll(
    PgTransaction.layer,
    PgRunLock.layer(database),
    PgConferenceRepository.layer,
    PgIntegrationOutbox.layer,
    PgRealtimeOutbox.layer,
    PgReaperJournal.layer,
    SystemCycleClock.layer,
    Metrics.layer,
    Liveness.layer,
    RecorderSignals.layer.pipe(Layer.provide(recorder(settings)))
  ).pipe(Layer.provideMerge(Layer.mergeAll(Database.layer(database), Layer.succeed(ReaperOptions, settings.reaper))))
