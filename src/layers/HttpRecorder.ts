/**
 * The recorder behind RECORDER_URL (R10): one signed POST for each call, idempotent by its key. Signs exactly the bytes
 * it sends, follows no redirect, never reads a response's body, and cuts the request off at its deadline. Failures are
 * told by status or error code alone, so that neither the secret nor credentials in the url reach a log.
 */
import { createHmac } from "node:crypto"
import { urlToHttpOptions } from "node:url"
// Undici and not fetch: it follows no redirects, takes its requests down when interrupted, and adds no headers.
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Duration, Effect, Layer, Redacted } from "effect"
import { HttpBody, HttpClient, type HttpClientError, HttpClientRequest } from "effect/http"
import type { StopRequest } from "../domain/StopRequest.ts"
import { Recorder, RecorderUnreachable } from "../services/Recorder.ts"

export interface HttpRecorderOptions {
  readonly url: URL
  readonly secret: Redacted.Redacted<string>
  /** For one request, connecting included; 5 seconds by default. */
  readonly deadline?: Duration.Input
}

// Besides 2xx: no such recording, or it had ended already; nothing is left to stop.
const nothingToStop: ReadonlySet<number> = new Set([404, 409, 410])
// Timeout, too early, too many requests: the same request may be taken a little later.
const worthRepeating: ReadonlySet<number> = new Set([408, 425, 429])

const fromStatus = (status: number): Effect.Effect<"stopped", RecorderUnreachable> =>
  (status >= 200 && status < 300) || nothingToStop.has(status)
    ? Effect.succeed("stopped")
    : Effect.fail(
        new RecorderUnreachable({
          reason: `the recorder answered ${status}`,
          isRetryable: status >= 500 || worthRepeating.has(status)
        })
      )

const fromClientError = (error: HttpClientError.HttpClientError) => {
  const cause = error.cause
  const code = cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : "no code"
  return new RecorderUnreachable({ reason: `the request to the recorder broke off (${code})`, isRetryable: true })
}

const signedRequest = ({ url, secret }: HttpRecorderOptions) => {
  const { auth } = urlToHttpOptions(url)
  const target = new URL(url)
  target.username = ""
  target.password = ""
  const base = HttpClientRequest.post(target, {
    headers: typeof auth === "string" ? { authorization: `Basic ${Buffer.from(auth).toString("base64")}` } : {}
  })
  return ({ recordingId, externalRef, conferenceId, reason }: StopRequest) => {
    const body = Buffer.from(JSON.stringify({ recordingId, externalRef, conferenceId, reason }))
    const signature = createHmac("sha256", Redacted.value(secret)).update(body).digest("hex")
    return base.pipe(
      HttpClientRequest.setHeaders({ "idempotency-key": recordingId, "x-signature": `sha256=${signature}` }),
      HttpClientRequest.setBody(HttpBody.uint8Array(body, "application/json"))
    )
  }
}

const make = (options: HttpRecorderOptions) =>
  Effect.gen(function* () {
    // Scoped: the end of the scope cancels a body nobody reads, which would otherwise hold its connection.
    const client = HttpClient.withScope(yield* HttpClient.HttpClient)
    const toRequest = signedRequest(options)
    const deadline = Duration.fromInputUnsafe(options.deadline ?? "5 seconds")
    const requestStop = (request: StopRequest) =>
      client.execute(toRequest(request)).pipe(
        Effect.mapError(fromClientError),
        Effect.flatMap((response) => fromStatus(response.status)),
        Effect.scoped,
        Effect.timeoutOrElse({
          duration: deadline,
          orElse: () =>
            Effect.fail(
              new RecorderUnreachable({
                reason: `the recorder did not answer within ${Duration.format(deadline)}`,
                isRetryable: true
              })
            )
        })
      )
    return Recorder.of({ requestStop })
  })

export const layer = (options: HttpRecorderOptions): Layer.Layer<Recorder> =>
  Layer.effect(Recorder, make(options)).pipe(Layer.provide(NodeHttpClient.layerUndici))
