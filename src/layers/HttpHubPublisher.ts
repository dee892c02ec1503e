/**
 * The realtime hub behind REALTIME_HUB_URL (X2): one signed POST for each push. Tells apart a hub that is away or does
 * not accept our signature (the row waits, no attempt is counted) from one that refused this very push.
 */
import { Effect, Layer, Schema } from "effect"
import { HttpClient } from "effect/http"
import { HubPush } from "../domain/RealtimeSignal.ts"
import { HubPublisher, PushFailed } from "../services/HubPublisher.ts"
import type { PendingSignal } from "../services/RealtimeOutbox.ts"
import * as SignedPost from "./SignedPost.ts"

const fail = (kind: PushFailed["kind"], reason: string) => Effect.fail(new PushFailed({ reason, kind }))

const fromStatus = (status: number): Effect.Effect<void, PushFailed> => {
  if (SignedPost.isTaken(status)) return Effect.void
  // A wrong secret or address refuses every push alike: it must not use up the attempts of them all.
  if (status === 401 || status === 403) {
    return fail(
      "misconfigured",
      `the hub answered ${status}: it does not accept our signature, check REALTIME_HUB_SECRET`
    )
  }
  if (status === 404 || status === 405 || (status >= 300 && status < 400)) {
    return fail("misconfigured", `the hub answered ${status}: nothing takes pushes there, check REALTIME_HUB_URL`)
  }
  return fail(SignedPost.isWorthRepeating(status) ? "deferred" : "rejected", `the hub answered ${status}`)
}

// The table may have another owner: a row is posted only as the contract has it.
const encode = Schema.encodeUnknownEffect(Schema.fromJsonString(HubPush))

const toJson = (signal: PendingSignal): Effect.Effect<string, PushFailed> =>
  encode({ ...signal, id: Number(signal.id) }).pipe(
    Effect.catchTag("SchemaError", ({ message }) => fail("rejected", `the row is no push of the contract: ${message}`))
  )

const traceparent = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/

/** The context in which the row was written; left out where the stored text is none. */
const traceHeaders = ({ headers }: PendingSignal): Readonly<Record<string, string>> =>
  headers.traceparent !== undefined && traceparent.test(headers.traceparent) ? { traceparent: headers.traceparent } : {}

const make = (options: SignedPost.SignedPostOptions) =>
  Effect.gen(function* () {
    const post = yield* SignedPost.make("the hub", options)
    return HubPublisher.of({
      push: (signal) =>
        toJson(signal).pipe(
          Effect.flatMap((json) => post(json, traceHeaders(signal))),
          Effect.catchTag("NoAnswer", ({ reason }) => fail("unavailable", reason)),
          Effect.flatMap(fromStatus),
          // Otherwise the client would put the context of this request in the place of the stored one.
          Effect.provideService(HttpClient.TracerPropagationEnabled, false)
        )
    })
  })

export const layer = (options: SignedPost.SignedPostOptions): Layer.Layer<HubPublisher> =>
  Layer.effect(HubPublisher, make(options)).pipe(Layer.provide(SignedPost.layerClient))
