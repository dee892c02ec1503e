/** The rules of the specification applied to a life's steps, written apart from the generator: what the room goes through. */
import type { Life } from "../../src/simulator/Life.ts"
import type { Step } from "../../src/simulator/Step.ts"

export interface Course {
  readonly status: "none" | "Provisioning" | "Active" | "Ended"
  readonly present: ReadonlySet<number>
  readonly lastActivity: number
  readonly admittedAt: number | undefined
  readonly endedAt: number | undefined
  /** The longest times that the worker had to wait in, and did not use. */
  readonly longestEmpty: number
  readonly longestQuiet: number
  /** Times that somebody came into the empty room, the first time included. */
  readonly fillings: number
  readonly recordings: ReadonlyMap<number, string>
  /** Commands that make no sense where they stand. */
  readonly faults: ReadonlyArray<string>
}

const start: Course = {
  status: "none",
  present: new Set(),
  lastActivity: 0,
  admittedAt: undefined,
  endedAt: undefined,
  longestEmpty: 0,
  longestQuiet: 0,
  fillings: 0,
  recordings: new Map(),
  faults: []
}

const waited = (course: Course, at: number): Course => {
  if (course.status !== "Active") return course
  const quiet = at - course.lastActivity
  return course.present.size === 0
    ? { ...course, longestEmpty: Math.max(course.longestEmpty, quiet) }
    : { ...course, longestQuiet: Math.max(course.longestQuiet, quiet) }
}

const advanceOrder = ["Pending", "Recording", "Uploading", "Available"]

const advance = (course: Course, recording: number, status: string): Course => {
  const from = course.recordings.get(recording)
  const recordings = new Map(course.recordings).set(recording, status)
  const next = from === undefined ? undefined : advanceOrder[advanceOrder.indexOf(from) + 1]
  const allowed = from !== undefined && from !== "Available" && (status === "Failed" || status === next)
  return allowed ? { ...course, recordings } : fault(course, `${from} -> ${status}`)
}

const fault = (course: Course, what: string): Course => ({ ...course, faults: [...course.faults, what] })

const afterStep = (before: Course, { at, command }: Step): Course => {
  if (command._tag === "AdvanceRecording") return advance(before, command.recording, command.status)
  if (command._tag === "Provision") {
    return before.status === "none"
      ? { ...before, status: "Provisioning", lastActivity: at }
      : fault(before, "Provision")
  }
  if (command._tag === "Admit") {
    return before.status === "Provisioning"
      ? { ...before, status: "Active", admittedAt: at, lastActivity: at }
      : fault(before, "Admit")
  }
  if (before.status !== "Active") return fault(before, `${command._tag} in ${before.status}`)
  if (command._tag === "StartRecording") {
    const recordings = new Map(before.recordings).set(command.recording, "Pending")
    return before.present.size > 0 ? { ...before, recordings } : fault(before, "StartRecording in an empty room")
  }
  const course = waited(before, at)
  if (command._tag === "End") return { ...course, status: "Ended", endedAt: at }
  if (command._tag === "Heartbeat") {
    return course.present.size > 0 ? { ...course, lastActivity: at } : fault(course, "Heartbeat in an empty room")
  }
  const present = new Set(course.present)
  const changes = command._tag === "Join" ? !present.has(command.user) : present.has(command.user)
  if (!changes) return fault(course, `${command._tag} of ${command.user}`)
  if (command._tag === "Join") present.add(command.user)
  else present.delete(command.user)
  const fillings = course.fillings + (command._tag === "Join" && course.present.size === 0 ? 1 : 0)
  return { ...course, present, lastActivity: at, fillings }
}

export const follow = (life: Life): Course => life.steps.reduce(afterStep, start)
