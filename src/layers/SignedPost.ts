/**
 * One signed JSON POST to a service outside (R10, X2). Signs exactly the bytes it sends, follows no redirect, never
 * reads a response's body, and cuts the request off at its deadline. Failures are told by status or error code alone, so
 * that neither the secret nor credentials in the url reach a log.
 */
import { createHmac } from "node:crypto"
import { urlToHttpOptions } from "node:url"
// Undici and not fetch: it follows no redirects, takes its requests down when interrupted, and adds no headers.
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Duration, Effect, Redacted, Schema } from "effect"
import { HttpBody, HttpClient, type HttpClientError, HttpClientRequest } from "effect/http"

export interface SignedPostOptions {
  readonly url: URL
  readonly secret: Redacted.Redacted<string>
  /** For one request, connecting included; 5 seconds by default. */
  readonly deadline?: Duration.Input
}

/** No answer came: the receiver is away, and the same request may be taken later. */
export class NoAnswer extends Schema.TaggedError<NoAnswer>()("NoAnswer", { reason: Schema.String }) {
  override get message(): string {
    return this.reason
  }
}

export const isTaken = (status: number): boolean => status >= 200 && status < 300

// Timeout, too early, too many requests: the same request may be taken a little later.
const worthRepeating: ReadonlySet<number> = new Set([408, 425, 429])

export const isWorthRepeating = (status: number): boolean => status >= 500 || worthRepeating.has(status)

const fromClientError = (receiver: string) => (error: HttpClientError.HttpClientError) => {
  const cause = error.cause
  const code = cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : "no code"
  return new NoAnswer({ reason: `the request to ${receiver} broke off (${code})` })
}

const signedRequest = ({ url, secret }: SignedPostOptions) => {
  const { auth } = urlToHttpOptions(url)
  const target = new URL(url)
  target.username = ""
  target.password = ""
  const base = HttpClientRequest.post(target, {
    headers: typeof auth === "string" ? { authorization: `Basic ${Buffer.from(auth).toString("base64")}` } : {}
  })
  return (json: string, headers: Readonly<Record<string, string>>) => {
    const body = Buffer.from(json)
    const signature = createHmac("sha256", Redacted.value(secret)).update(body).digest("hex")
    return base.pipe(
      HttpClientRequest.setHeaders({ ...headers, "x-signature": `sha256=${signature}` }),
      HttpClientRequest.setBody(HttpBody.uint8Array(body, "application/json"))
    )
  }
}

/** `post(json, headers)` answers with the status, whatever it is. `receiver` names the other side in reasons. */
export const make = Effect.fnUntraced(function* (receiver: string, options: SignedPostOptions) {
  // Scoped: the end of the scope cancels a body nobody reads, which would otherwise hold its connection.
  const client = HttpClient.withScope(yield* HttpClient.HttpClient)
  const toRequest = signedRequest(options)
  const deadline = Duration.fromInputUnsafe(options.deadline ?? "5 seconds")
  return (json: string, headers: Readonly<Record<string, string>>): Effect.Effect<number, NoAnswer> =>
    client.execute(toRequest(json, headers)).pipe(
      Effect.mapBoth({ onFailure: fromClientError(receiver), onSuccess: (response) => response.status }),
      Effect.scoped,
      Effect.timeoutOrElse({
        duration: deadline,
        orElse: () =>
          Effect.fail(new NoAnswer({ reason: `${receiver} did not answer within ${Duration.format(deadline)}` }))
      })
    )
})

export const layerClient = NodeHttpClient.layerUndici
