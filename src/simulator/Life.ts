/**
 * One conference's life as a list of steps, and what must become of it if the worker is right (R1 to R3).
 *
 * A life is a function of seed, number and pace alone: it can be told again, and does not depend on what runs beside it.
 * Whatever must happen inside one of the worker's windows is planned before that window's margin (see Pace).
 */
import { Effect, Random } from "effect"
import { between, byShare, chance, wholeBetween } from "./Draw.ts"
import type { Pace } from "./Pace.ts"
import * as RecordingPath from "./RecordingPath.ts"
import * as Sitting from "./Sitting.ts"
import { isActivity, type Step, step } from "./Step.ts"

/** How often each kind of life occurs, in percent. */
export const shares = {
  /** People come, leave one by one or are sent home, and the conference is ended by command. */
  normal: 45,
  /** The last one leaves, or nobody ever comes, and nobody ends it. */
  "abandoned-empty": 18,
  /** Everybody falls off without leaving: the count stays, the heartbeats stop. */
  crashed: 12,
  /** Emptied, and joined again inside the grace, up to three times; then one of the three above. */
  rejoined: 12,
  /** Provisioning for ever. */
  "never-admitted": 6,
  /** Admitted shortly before the provision timeout; then one of the first three. */
  "late-admitted": 7
} as const

export type Kind = keyof typeof shares

export interface Expected {
  /** `ended-by-messenger`, or the EndReason that the worker must write. */
  readonly outcome: "ended-by-messenger" | "EmptyTimeout" | "Error" | "Timeout"
  /** The earliest right moment of it, in milliseconds since the life began. */
  readonly dueAt: number
}

export interface Life {
  readonly number: number
  readonly kind: Kind
  /** In order of time. */
  readonly steps: ReadonlyArray<Step>
  readonly expected: Expected
}

type Ending = "normal" | "abandoned-empty" | "crashed"

const endings: Readonly<Record<Ending, number>> = { normal: 50, "abandoned-empty": 25, crashed: 25 }

const ending = (source: Random.Random, kind: Kind): Ending =>
  kind === "normal" || kind === "abandoned-empty" || kind === "crashed" ? kind : byShare(source, endings)

const admission = (source: Random.Random, pace: Pace, kind: Kind): number =>
  kind === "late-admitted"
    ? pace.provisionLimit - between(source, 0, pace.provision - pace.provisionLimit)
    : Math.min(between(source, 300, 4000) / pace.scale, pace.provisionLimit / 2)

/** The stretches with somebody in the room; the gaps between them lie inside the grace. */
const drawSittings = (
  source: Random.Random,
  pace: Pace,
  admitted: number,
  kind: Kind,
  lastOneEmpties: boolean
): ReadonlyArray<Sitting.Sitting> => {
  if (kind === "abandoned-empty" && chance(source, 0.15)) return []
  const count = kind === "rejoined" ? 1 + wholeBetween(source, 1, 3) : 1
  const sittings: Array<Sitting.Sitting> = []
  let start = admitted + Math.min(between(source, 200, 10_000) / pace.scale, pace.graceLimit)
  for (let index = 0; index < count; index++) {
    // Half of those who come back are the ones who had left, so that a roster holds them twice.
    const firstUser = chance(source, 0.5) ? 0 : index * 10
    const sitting = Sitting.draw(source, pace, start, firstUser, index < count - 1 || lastOneEmpties)
    sittings.push(sitting)
    start = sitting.end + between(source, 0.1, 1) * pace.graceLimit
  }
  return sittings
}

const expect = (steps: ReadonlyArray<Step>, ending: Ending, pace: Pace): Expected => {
  const last = (matches: (step: Step) => boolean) =>
    steps.reduce((latest, step) => (matches(step) ? Math.max(latest, step.at) : latest), 0)
  const lastActivity = last((step) => isActivity(step.command))
  switch (ending) {
    case "normal":
      return { outcome: "ended-by-messenger", dueAt: last((step) => step.command._tag === "End") }
    case "abandoned-empty":
      return { outcome: "EmptyTimeout", dueAt: lastActivity + pace.grace }
    case "crashed":
      return { outcome: "Timeout", dueAt: lastActivity + pace.stale }
  }
}

// At the same millisecond people leave after whatever needs somebody inside, and the end comes last.
const turn = ({ command }: Step): number => (command._tag === "End" ? 2 : command._tag === "Leave" ? 1 : 0)

const tell = (source: Random.Random, pace: Pace, number: number): Life => {
  const kind = byShare(source, shares)
  const provision = step(0, { _tag: "Provision", mediaType: chance(source, 0.6) ? "Video" : "Audio" })
  if (kind === "never-admitted") {
    return { number, kind, steps: [provision], expected: { outcome: "Error", dueAt: pace.provision } }
  }
  const end = ending(source, kind)
  // The host may send everybody home, or the command follows the last one who left.
  const sentHome = end === "normal" && chance(source, 0.4)
  const admitted = admission(source, pace, kind)
  const sittings = drawSittings(source, pace, admitted, kind, end !== "crashed" && !sentHome)
  const over = sittings.at(-1)?.end ?? admitted
  const endDelay = sentHome ? 0 : Math.min(between(source, 100, 5000) / pace.scale, pace.graceLimit)
  const steps = [
    provision,
    step(admitted, { _tag: "Admit" }),
    ...sittings.flatMap((sitting) => sitting.steps),
    ...RecordingPath.draw(source, pace, sittings),
    ...(end === "normal" ? [step(over + endDelay, { _tag: "End" })] : [])
  ]
  // The sort is stable: at the same millisecond and turn the order above holds.
  const inOrder = steps.sort((a, b) => a.at - b.at || turn(a) - turn(b))
  return { number, kind, steps: inOrder, expected: expect(inOrder, end, pace) }
}

/** The life of room `number` in the traffic of `seed`. */
export const generate = (seed: number, number: number, pace: Pace): Effect.Effect<Life> =>
  Random.Random.pipe(
    Effect.map((source) => tell(source, pace, number)),
    Random.withSeed(`${seed}:${number}`)
  )
