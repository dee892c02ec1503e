/** The signal that asks the recorder to stop one recording of a closed conference (R10). */
import { type ConferenceId, isActiveRecording, type Recording, type RecordingId } from "./ConferenceSession.ts"

export interface StopRequest {
  readonly recordingId: RecordingId
  /** The media stack's own id of the job; null while it has none. */
  readonly externalRef: string | null
  readonly conferenceId: ConferenceId
  /** EndReason of the conference. */
  readonly reason: string
}

/** One request for each recording that may still be running. */
export const forRecordings = (
  conferenceId: ConferenceId,
  reason: string,
  recordings: ReadonlyArray<Recording>
): ReadonlyArray<StopRequest> =>
  recordings
    .filter(isActiveRecording)
    .map((recording) => ({ recordingId: recording.id, externalRef: recording.externalRef, conferenceId, reason }))
