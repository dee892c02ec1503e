/** The recorder behind RECORDER_URL (R10): one signed POST for each call, idempotent by its key. */
import { Effect, Layer, Schema } from "effect"
import { StopRequest } from "../domain/StopRequest.ts"
import { Recorder, RecorderUnreachable } from "../services/Recorder.ts"
import * as SignedPost from "./SignedPost.ts"

// Besides 2xx: no such recording, or it had ended already; nothing is left to stop.
const nothingToStop: ReadonlySet<number> = new Set([404, 409, 410])

const fromStatus = (status: number): Effect.Effect<"stopped", RecorderUnreachable> =>
  SignedPost.isTaken(status) || nothingToStop.has(status)
    ? Effect.succeed("stopped")
    : Effect.fail(
        new RecorderUnreachable({
          reason: `the recorder answered ${status}`,
          isRetryable: SignedPost.isWorthRepeating(status)
        })
      )

const encode = Schema.encodeEffect(Schema.fromJsonString(StopRequest))

const make = (options: SignedPost.SignedPostOptions) =>
  Effect.gen(function* () {
    const post = yield* SignedPost.make("the recorder", options)
    return Recorder.of({
      requestStop: (request) =>
        encode(request).pipe(
          Effect.orDie,
          Effect.flatMap((json) => post(json, { "idempotency-key": request.recordingId })),
          Effect.catchTag("NoAnswer", ({ reason }) =>
            Effect.fail(new RecorderUnreachable({ reason, isRetryable: true }))
          ),
          Effect.flatMap(fromStatus)
        )
    })
  })

export const layer = (options: SignedPost.SignedPostOptions): Layer.Layer<Recorder> =>
  Layer.effect(Recorder, make(options)).pipe(Layer.provide(SignedPost.layerClient))
