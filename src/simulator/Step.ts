/** What can happen in a life: one command of the messenger at a time offset. People and recordings are numbered. */
import type { MediaType, RecordingStatus } from "../domain/ConferenceSession.ts"

export type Command =
  | { readonly _tag: "Provision"; readonly mediaType: MediaType }
  | { readonly _tag: "Admit" }
  | { readonly _tag: "Join"; readonly user: number }
  | { readonly _tag: "Leave"; readonly user: number }
  | { readonly _tag: "Heartbeat" }
  | { readonly _tag: "End" }
  | { readonly _tag: "StartRecording"; readonly recording: number }
  | { readonly _tag: "AdvanceRecording"; readonly recording: number; readonly status: RecordingStatus }

export interface Step {
  /** Whole milliseconds since the life began. */
  readonly at: number
  readonly command: Command
}

export const step = (at: number, command: Command): Step => ({ at: Math.round(at), command })

/** Whether the command moves `last_activity_at`. */
export const isActivity = (command: Command): boolean =>
  command._tag === "Admit" || command._tag === "Join" || command._tag === "Leave" || command._tag === "Heartbeat"
