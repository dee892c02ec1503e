/**
 * A generated story: options, rooms with their lives, and what goes wrong at which tick. Plain numbers, so that a failing
 * plan shrinks and prints. Lives are drawn towards the edges of the windows, ticks towards trouble.
 */
import { Arbitrary, Schema } from "effect"
import type { Operation } from "../fakes/Faults.ts"

/** Milliseconds. */
export interface Settings {
  readonly interval: number
  readonly grace: number
  readonly provision: number
  readonly stale: number
  readonly batchSize: number
  readonly maxRun: number
}

/** The pause before a step: a window or none, and microseconds more; `aligned` puts the due moment on a tick of the grid. */
export interface Wait {
  readonly base: "none" | "grace" | "provision" | "stale"
  readonly micros: number
  readonly aligned: "free" | "on" | "just before" | "just after"
}

export interface Step {
  readonly command: "join" | "leave" | "heartbeat" | "end"
  readonly wait: Wait
  /** How long the messenger's transaction keeps the row locked, in milliseconds. */
  readonly hold: number
}

/** A crash is a life whose steps end while somebody is in the room. */
interface Life {
  readonly provision: Wait
  readonly admission: { readonly never: boolean; readonly wait: Wait }
  readonly steps: ReadonlyArray<Step>
}

export interface Fault {
  readonly kind: "none" | "busy" | "fail" | "die" | "outage" | "delay"
  readonly operation: Operation
  /** For operations that every phase repeats: which of the three. */
  readonly phase: number
  readonly delay: number
}

export interface Plan {
  readonly settings: Settings
  /** When the worker starts; the rooms' time begins at 0. */
  readonly startsAt: number
  readonly lives: ReadonlyArray<Life>
  /** One for each tick, in order; later ticks meet no trouble. */
  readonly faults: ReadonlyArray<Fault>
}

export const noFault: Fault = { kind: "none", operation: "claim", phase: 0, delay: 0 }

const int = (minimum: number, maximum: number) =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })))

/** One of the table, evenly; shrinks to the first. */
const pick = <const A>(...table: ReadonlyArray<A>): Arbitrary.Arbitrary<A> =>
  Arbitrary.map(int(0, table.length - 1), (index) => table[index] as A)

const settings = Arbitrary.map(
  Arbitrary.all({
    interval: int(5_000, 60_000),
    grace: int(1_000, 150_000),
    provision: int(1_000, 180_000),
    beyondGrace: int(1, 300_000),
    batchSize: pick(1000, 6, 3, 2, 1),
    maxRun: pick(30_000, 100_000, 5_000)
  }),
  ({ beyondGrace, ...rest }): Settings => ({ ...rest, stale: rest.grace + beyondGrace })
)

const wait: Arbitrary.Arbitrary<Wait> = Arbitrary.all({
  base: pick<Wait["base"]>("none", "none", "none", "grace", "provision", "stale"),
  micros: int(-2_000_000, 40_000_000),
  aligned: pick<Wait["aligned"]>("free", "free", "on", "just before", "just after")
})

const hold = pick(0, 0, 0, 0, 0, 0, 0, 1, 2_500, 40_000)

const step: Arbitrary.Arbitrary<Step> = Arbitrary.all({
  command: pick<Step["command"]>("leave", "join", "heartbeat", "join", "leave", "heartbeat", "join", "leave", "end"),
  wait,
  hold
})

const life: Arbitrary.Arbitrary<Life> = Arbitrary.all({
  provision: Arbitrary.map(Arbitrary.all([int(0, 240_000_000), wait]), ([micros, { aligned }]) => ({
    base: "none" as const,
    micros,
    aligned
  })),
  admission: Arbitrary.all({ never: pick(false, false, false, false, true), wait }),
  steps: Arbitrary.array(step, { maxLength: 9 })
})

const inPhase: ReadonlyArray<Operation> = [
  "claim",
  "confirm",
  "begin",
  "details",
  "apply",
  "append",
  "appendRealtime",
  "appendClosings",
  "countSkippedLocked",
  "commit",
  "commitAnswer"
]
const once: ReadonlyArray<Operation> = ["lock", "backlog", "recordRun", "prune"]

const fault: Arbitrary.Arbitrary<Fault> = Arbitrary.all({
  kind: pick<Fault["kind"]>("none", "none", "none", "none", "busy", "fail", "die", "outage", "delay", "delay", "delay"),
  operation: pick<Operation>(...inPhase, ...once, "claim", "apply", "details"),
  phase: int(0, 2),
  delay: int(0, 95_000)
})

/** Rooms enough for a batch to be full, ticks enough for trouble to follow on trouble. */
export const plans: Arbitrary.Arbitrary<Plan> = Arbitrary.all({
  settings,
  startsAt: int(0, 120_000),
  lives: Arbitrary.array(life, { minLength: 20, maxLength: 60 }),
  faults: Arbitrary.array(fault, { maxLength: 25 })
})

/** No more rooms fall due than a batch holds, no row is locked, every cycle is shorter than interval and MaxRunDuration. */
export const calm = (plan: Plan): Plan => {
  const limit = Math.min(plan.settings.interval, plan.settings.maxRun)
  return {
    ...plan,
    settings: { ...plan.settings, batchSize: 1000 },
    lives: plan.lives.map((life) => ({ ...life, steps: life.steps.map((step) => ({ ...step, hold: 0 })) })),
    // Five seconds is what the work after a cycle gets at most; the lock's answer comes at once.
    faults: plan.faults.map((fault) =>
      fault.operation === "lock" ? noFault : { ...fault, kind: "delay", delay: Math.floor(fault.delay % limit) }
    )
  }
}
