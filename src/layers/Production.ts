/** The only wiring: every port with its technology. */
import { Duration, Effect, Layer, Option } from "effect"
import * as DeliveryMetrics from "../program/DeliveryMetrics.ts"
import * as Metrics from "../program/Metrics.ts"
import * as RecorderSignals from "../program/RecorderSignals.ts"
import * as DeliveryHealth from "../services/DeliveryHealth.ts"
import { DeliveryOptions } from "../services/DeliveryOptions.ts"
import { Heartbeat } from "../services/Heartbeat.ts"
import * as Liveness from "../services/Liveness.ts"
import { ReaperOptions } from "../services/ReaperOptions.ts"
import type { Settings } from "../services/Settings.ts"
import type { KafkaSettings } from "../services/SettingsKafka.ts"
import { WakeUps } from "../services/WakeUps.ts"
import * as Database from "./Database.ts"
import * as HttpHubPublisher from "./HttpHubPublisher.ts"
import * as HttpRecorder from "./HttpRecorder.ts"
import * as KafkajsEventPublisher from "./KafkajsEventPublisher.ts"
import * as LogRecorder from "./LogRecorder.ts"
import * as PgConferenceRepository from "./PgConferenceRepository.ts"
import * as PgIntegrationOutbox from "./PgIntegrationOutbox.ts"
import * as PgRealtimeOutbox from "./PgRealtimeOutbox.ts"
import * as PgReaperJournal from "./PgReaperJournal.ts"
import * as PgRunLock from "./PgRunLock.ts"
import * as PgTransaction from "./PgTransaction.ts"
import * as PgWakeUps from "./PgWakeUps.ts"
import * as PlatformaticEventPublisher from "./PlatformaticEventPublisher.ts"
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
    PgIntegrationOutbox.layer(settings.outbox),
    PgRealtimeOutbox.layer,
    PgReaperJournal.layer,
    SystemCycleClock.layer,
    Metrics.layer,
    Liveness.layer,
    RecorderSignals.layer.pipe(Layer.provide(recorder(settings)))
  ).pipe(Layer.provideMerge(Layer.mergeAll(Database.layer(database), Layer.succeed(ReaperOptions, settings.reaper))))

// Three tries of six seconds, and a new connection; far below the two minutes of the dispatcher's lock.
const publishBudget = Duration.seconds(20)

/** The broker's client that KAFKA_CLIENT names. */
export const publisher = (kafka: KafkaSettings) =>
  kafka.client === "platformatic"
    ? PlatformaticEventPublisher.layer({ kafka, budget: publishBudget })
    : KafkajsEventPublisher.layer({ kafka, budget: publishBudget })

export const hub = ({ url, secret }: Option.Option.Value<Settings["hub"]>) =>
  HttpHubPublisher.layer({ url: new URL(url), secret })

/** For a process that closes no rooms: what a dispatcher does shows that it lives. */
const dispatcherHeartbeat = Layer.effect(
  Heartbeat,
  Effect.map(Liveness.Liveness, ({ beat }) => beat)
)

const noWakeUps = Layer.succeed(WakeUps, { awaitEvents: Effect.never, awaitSignals: Effect.never })

interface Roles {
  readonly reaps: boolean
  /** Where nothing is delivered a connection for LISTEN would be wasted. */
  readonly delivers: boolean
}

/** What the dispatchers need beside `layer`, on the database given. */
export const delivery = (settings: Settings, database: Database.DatabaseConfig, { reaps, delivers }: Roles) =>
  Layer.mergeAll(
    PgRunLock.outboxLayer(database),
    PgRunLock.realtimeLayer(database),
    DeliveryMetrics.layer,
    Layer.succeed(DeliveryOptions, {
      maxAttempts: settings.outbox.maxAttempts,
      retention: settings.outbox.retention,
      realtimeMaxAge: settings.realtimeMaxAge
    }),
    delivers ? PgWakeUps.layer(Option.getOrElse(settings.database.listenUrl, () => database.url)) : noWakeUps,
    reaps ? Layer.empty : dispatcherHeartbeat
  ).pipe(Layer.provideMerge(DeliveryHealth.layer))
