/**
 * The times that a life keeps to: the worker's windows as they are, and the messenger's own times divided by the scale.
 *
 * A life may use a window only up to its margin: a quarter of the window, at least 500 ms and at most 5 s. What must
 * happen inside a window is planned to happen before window minus margin, so that pool waits, lock waits and timer lag
 * do not decide what becomes of the room. Windows that leave no room for their margin are refused.
 */
import { Duration, Result, Schema } from "effect"
import type { Windows } from "../domain/Phase.ts"

/** The worker's windows, and how often somebody who is present shows life. */
export interface Timing extends Windows {
  readonly heartbeatInterval: Duration.Duration
}

/** All in milliseconds. `…Limit` is the window minus its margin. */
export interface Pace {
  readonly grace: number
  readonly graceLimit: number
  readonly provision: number
  readonly provisionLimit: number
  readonly stale: number
  /** Already divided by the scale. */
  readonly heartbeat: number
  readonly scale: number
  /** The smallest margin: a life that lags more than this is no longer sure of its end. */
  readonly margin: number
}

/** The windows and the scale do not go together; `message` names every reason. */
export class TimingRefused extends Schema.TaggedError<TimingRefused>()("TimingRefused", {
  problems: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return this.problems.join("; ")
  }
}

const smallestMargin = 500
const largestMargin = 5000
const fastestHeartbeat = 50

export const margin = (window: number): number => Math.min(largestMargin, Math.max(smallestMargin, window / 4))

const tooShort = (name: string, window: number): ReadonlyArray<string> =>
  window >= 2 * smallestMargin
    ? []
    : [`${name} of ${window} ms is too short to act inside it safely: at least ${2 * smallestMargin} ms`]

/** The pace for these windows, or why there is none. */
export const make = (timing: Timing, timeScale: number): Result.Result<Pace, TimingRefused> => {
  const grace = Duration.toMillis(timing.emptyRoomGrace)
  const provision = Duration.toMillis(timing.provisionTimeout)
  const stale = Duration.toMillis(timing.staleLiveTimeout)
  if (!(timeScale > 0 && Number.isFinite(timeScale))) {
    return Result.fail(new TimingRefused({ problems: [`time scale ${timeScale} is not a number above 0`] }))
  }
  const heartbeat = Duration.toMillis(timing.heartbeatInterval) / timeScale
  const problems = [
    ...tooShort("EmptyRoomGrace", grace),
    ...tooShort("ProvisionTimeout", provision),
    ...tooShort("StaleLiveTimeout", stale),
    ...(grace < stale ? [] : [`EmptyRoomGrace of ${grace} ms is not shorter than StaleLiveTimeout of ${stale} ms`]),
    ...(heartbeat >= fastestHeartbeat
      ? []
      : [`a heartbeat every ${heartbeat} ms is too often: at least ${fastestHeartbeat} ms, or a smaller time scale`]),
    ...(3 * heartbeat + margin(stale) <= stale
      ? []
      : [`a heartbeat every ${heartbeat} ms is too seldom for StaleLiveTimeout of ${stale} ms: three must fit into it`])
  ]
  if (problems.length > 0) return Result.fail(new TimingRefused({ problems }))
  return Result.succeed({
    grace,
    graceLimit: grace - margin(grace),
    provision,
    provisionLimit: provision - margin(provision),
    stale,
    heartbeat,
    scale: timeScale,
    margin: Math.min(margin(grace), margin(provision), margin(stale))
  })
}
