/** A plan's lives as commands at moments, in order: microseconds since the story began. */
import type { Plan, Step, Wait } from "./Plan.ts"

export interface Command {
  readonly at: bigint
  /** The room's number, from 1. */
  readonly room: number
  readonly name: "provision" | "admit" | Step["command"]
  readonly hold: number
}

const nudges = { on: 0n, "just before": -1n, "just after": 1n } as const

/** The window that the command opens: the one whose end the grid is to meet. */
const opened = {
  provision: "provision",
  admit: "grace",
  leave: "grace",
  end: "grace",
  join: "stale",
  heartbeat: "stale"
} as const

const micros = (millis: number): bigint => BigInt(millis) * 1000n

/** The first moment from `from` on whose window ends on a tick, while ticks are one interval apart. */
const alignedTo = ({ settings, startsAt }: Plan, from: bigint, window: bigint): bigint => {
  const interval = micros(settings.interval)
  const rest = (micros(startsAt) - window - from) % interval
  return from + (rest < 0n ? rest + interval : rest)
}

const momentOf = (plan: Plan, previous: bigint, wait: Wait, name: Command["name"]): bigint => {
  const base = wait.base === "none" ? 0n : micros(plan.settings[wait.base])
  const drawn = previous + base + BigInt(wait.micros)
  const free = drawn < previous ? previous : drawn
  if (wait.aligned === "free") return free
  const aligned = alignedTo(plan, free, micros(plan.settings[opened[name]])) + nudges[wait.aligned]
  return aligned < previous ? previous : aligned
}

export const commands = (plan: Plan): ReadonlyArray<Command> =>
  plan.lives
    .flatMap((life, index) => {
      const room = index + 1
      const told: Array<Command> = []
      let now = 0n
      const tell = (name: Command["name"], wait: Wait, hold: number) => {
        now = momentOf(plan, now, wait, name)
        told.push({ at: now, room, name, hold })
      }
      tell("provision", life.provision, 0)
      if (!life.admission.never) tell("admit", life.admission.wait, 0)
      for (const { command, wait, hold } of life.steps) tell(command, wait, hold)
      return told
    })
    .toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
