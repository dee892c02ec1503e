/**
 * Recorders that let no signal leave the process: none is configured, or the media stack is switched off
 * (CONFERENCE_CALLS_ENABLED=false). Closing goes on all the same (R10), and the log says what was not sent.
 */
import { Effect, Layer } from "effect"
import { Recorder } from "../services/Recorder.ts"

/** RECORDER_URL is unset. */
export const notConfigured: Layer.Layer<Recorder> = Layer.succeed(Recorder, {
  requestStop: ({ recordingId, conferenceId }) =>
    Effect.logInfo("recorder stop signal not sent: no recorder is configured").pipe(
      Effect.annotateLogs({ recordingId, conferenceId }),
      Effect.as("not-configured")
    )
})

/** CONFERENCE_CALLS_ENABLED=false. */
export const disabled: Layer.Layer<Recorder> = Layer.succeed(Recorder, {
  requestStop: ({ recordingId, conferenceId }) =>
    Effect.logDebug("recorder stop signal not sent: conference calls are disabled").pipe(
      Effect.annotateLogs({ recordingId, conferenceId }),
      Effect.as("disabled")
    )
})
