/** The signal that asks the recorder to stop one recording of a closed conference, as it goes out (R10). */
import { Schema } from "effect"
import { ConferenceId, EndReason, isActiveRecording, type Recording, RecordingId } from "./ConferenceSession.ts"

export const StopRequest = Schema.Struct({
  recordingId: RecordingId,
  externalRef: Schema.NullOr(Schema.String).annotate({
    description: "The media stack's own id of the job; null while it has none."
  }),
  conferenceId: ConferenceId,
  reason: EndReason.annotate({ description: "EndReason of the conference." })
}).annotate({ title: "recorder-stop", description: "Stop this recording: its conference was closed." })
export interface StopRequest extends Schema.Schema.Type<typeof StopRequest> {}

/** One request for each recording that may still be running. */
export const forRecordings = (
  conferenceId: ConferenceId,
  reason: EndReason,
  recordings: ReadonlyArray<Recording>
): ReadonlyArray<StopRequest> =>
  recordings
    .filter(isActiveRecording)
    .map((recording) => ({ recordingId: recording.id, externalRef: recording.externalRef, conferenceId, reason }))
