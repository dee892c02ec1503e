/**
 * The recordings of one life: none, one, or several, ending in any state. A recording starts while somebody is in the
 * room and then goes its own way, also after the room was closed (R10: finalising is the recording's own path).
 */
import type { Random } from "effect"
import type { RecordingStatus } from "../domain/ConferenceSession.ts"
import { between, byShare, wholeBetween } from "./Draw.ts"
import type { Pace } from "./Pace.ts"
import type { Sitting } from "./Sitting.ts"
import { type Step, step } from "./Step.ts"

const amounts = { none: 50, one: 30, several: 20 } as const

const progress: ReadonlyArray<RecordingStatus> = ["Recording", "Uploading", "Available"]

/** The states after `Pending`, up to a last one that is drawn evenly from all five. */
const statesAfterPending = (source: Random.Random): ReadonlyArray<RecordingStatus> => {
  const last = wholeBetween(source, 0, 4)
  return last === 4 ? [...progress.slice(0, wholeBetween(source, 0, 2)), "Failed"] : progress.slice(0, last)
}

const path = (source: Random.Random, pace: Pace, recording: number, sitting: Sitting): ReadonlyArray<Step> => {
  let at = between(source, sitting.start, sitting.end)
  const steps = [step(at, { _tag: "StartRecording", recording })]
  for (const status of statesAfterPending(source)) {
    at += between(source, 1000, 60_000) / pace.scale
    steps.push(step(at, { _tag: "AdvanceRecording", recording, status }))
  }
  return steps
}

export const draw = (source: Random.Random, pace: Pace, sittings: ReadonlyArray<Sitting>): ReadonlyArray<Step> => {
  const amount = byShare(source, amounts)
  const count = amount === "none" ? 0 : amount === "one" ? 1 : wholeBetween(source, 2, 3)
  return Array.from({ length: count }, (_, recording) => {
    const sitting = sittings[wholeBetween(source, 0, sittings.length - 1)]
    return sitting === undefined ? [] : path(source, pace, recording, sitting)
  }).flat()
}
