/**
 * A stretch of time in which somebody is in the room. The first one in stays to the end, so that the room is never
 * empty in between; heartbeats come all the time, well within the stale window.
 */
import type { Random } from "effect"
import { between, chance, wholeBetween } from "./Draw.ts"
import type { Pace } from "./Pace.ts"
import { type Step, step } from "./Step.ts"

export interface Sitting {
  readonly start: number
  readonly end: number
  readonly steps: ReadonlyArray<Step>
}

// Meetings of 10 s to 15 min, short ones more often.
const shortest = 10_000
const longest = 15 * 60_000

const talkTime = (source: Random.Random): number => shortest + (longest - shortest) * source.nextDoubleUnsafe() ** 3

const heartbeats = (source: Random.Random, pace: Pace, start: number, end: number): ReadonlyArray<Step> => {
  const steps: Array<Step> = []
  for (let at = start; ; ) {
    at += pace.heartbeat * between(source, 0.8, 1.2)
    if (at >= end) return steps
    steps.push(step(at, { _tag: "Heartbeat" }))
  }
}

/** `everybodyLeaves`: they leave one by one; else some stay until the end, whatever it is. `firstUser` joins first. */
export const draw = (
  source: Random.Random,
  pace: Pace,
  start: number,
  firstUser: number,
  everybodyLeaves: boolean
): Sitting => {
  const end = start + talkTime(source) / pace.scale
  const guests = wholeBetween(source, 0, chance(source, 0.7) ? 2 : 7)
  const steps: Array<Step> = [step(start, { _tag: "Join", user: firstUser })]
  for (let guest = 1; guest <= guests; guest++) {
    const user = firstUser + guest
    const joined = between(source, start, end)
    const left = between(source, joined, end)
    steps.push(step(joined, { _tag: "Join", user }))
    if (everybodyLeaves || chance(source, 0.3)) steps.push(step(left, { _tag: "Leave", user }))
  }
  steps.push(...heartbeats(source, pace, start, end))
  if (everybodyLeaves) steps.push(step(end, { _tag: "Leave", user: firstUser }))
  return { start, end, steps }
}
