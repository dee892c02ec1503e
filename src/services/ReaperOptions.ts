/** The options of the specification (O), already validated. Durations are finite and > 0; `maxClockSkew` may be 0 = off. */
import { Context, Duration } from "effect"
import type { Windows } from "../domain/Phase.ts"

export interface Options extends Windows {
  /** Distance of two ticks (L1). */
  readonly pollingInterval: Duration.Duration
  /** Sessions that one phase closes in one cycle at the most, 1 to 10000. */
  readonly batchSize: number
  /** After this time a frozen or partitioned holder has lost the run lock and its row locks (L3). */
  readonly lockTtl: Duration.Duration
  /** Longest time of one cycle (L4); shorter than `lockTtl`. */
  readonly maxRunDuration: Duration.Duration
  /** Largest difference of AsOf and the database's clock (L7). */
  readonly maxClockSkew: Duration.Duration
  /** Whether a failed provision writes a realtime row (W2). */
  readonly provisionFailedSignal: boolean
  /** How long evidence is kept. */
  readonly closingsRetention: Duration.Duration
  /** Names this process in `conference_reaper_runs`. */
  readonly instance: string
}

export const defaults: Options = {
  pollingInterval: Duration.seconds(30),
  emptyRoomGrace: Duration.seconds(90),
  provisionTimeout: Duration.minutes(2),
  staleLiveTimeout: Duration.hours(4),
  batchSize: 100,
  lockTtl: Duration.minutes(2),
  maxRunDuration: Duration.seconds(30),
  maxClockSkew: Duration.seconds(5),
  provisionFailedSignal: true,
  closingsRetention: Duration.days(90),
  instance: "reaper"
}

export class ReaperOptions extends Context.Service<ReaperOptions, Options>()("conference-room-reaper/ReaperOptions") {}
