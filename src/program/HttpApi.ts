/**
 * Health and metrics over HTTP: `GET /health/live`, `/health/ready` and `/metrics`, all else 404. Probes come every few
 * seconds, so they are neither logged nor traced; a defect in one is logged, since nothing else would say so.
 */
import { createServer } from "node:http"
import { NodeHttpServer } from "@effect/platform-node"
import { Cause, Effect, Layer, Schema } from "effect"
import { HttpMiddleware, HttpRouter, HttpServer, HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"
import * as DurationText from "../domain/DurationText.ts"
import { DeliveryHealth } from "../services/DeliveryHealth.ts"
import { Liveness } from "../services/Liveness.ts"
import { Store } from "../services/Store.ts"

/** The port cannot be had; the message says what to do about it. */
export class HttpServerUnavailable extends Schema.TaggedError<HttpServerUnavailable>()("HttpServerUnavailable", {
  host: Schema.String,
  port: Schema.Int,
  reason: Schema.String
}) {
  override get message(): string {
    return `the HTTP server cannot listen with HTTP_HOST=${this.host} HTTP_PORT=${this.port}: ${this.reason}`
  }
}

interface Address {
  readonly host: string
  readonly port: number
}

const reasons: Partial<Record<string, string>> = {
  EADDRINUSE:
    "the port is in use; stop the process that has it or set HTTP_PORT to another one (0 takes any free port)",
  EACCES: "the port is not permitted for this user; set HTTP_PORT to 1024 or above",
  EADDRNOTAVAIL: "the host is no address of this machine; set HTTP_HOST to one that is, for example 0.0.0.0",
  ENOTFOUND: "the host is not known; set HTTP_HOST to an address of this machine, for example 0.0.0.0"
}

const unavailable = ({ host, port }: Address, cause: unknown): HttpServerUnavailable => {
  const error = cause as Partial<NodeJS.ErrnoException>
  return new HttpServerUnavailable({ host, port, reason: reasons[error.code ?? ""] ?? error.message ?? String(cause) })
}

const health = (isHealthy: boolean, body: { readonly status: string } & Readonly<Record<string, unknown>>) =>
  HttpServerResponse.jsonUnsafe(body, { status: isHealthy ? 200 : 503, headers: { "cache-control": "no-store" } })

const live = Effect.gen(function* () {
  const { alive, silentFor } = yield* (yield* Liveness).check
  return alive
    ? health(true, { status: "live" })
    : health(false, { status: "stuck", reason: `no cycle was tried for ${DurationText.format(silentFor)}` })
})

// A receiver that is away is no reason to take the process out of service: rooms are closed meanwhile, rows wait.
const ready = Effect.gen(function* () {
  yield* (yield* Store).ping
  const delivery = yield* (yield* DeliveryHealth).check
  const isDegraded = Object.values(delivery).some(({ status }) => status === "degraded")
  return health(true, { status: isDegraded ? "degraded" : "ready", delivery })
}).pipe(
  Effect.catchTag("StoreUnavailable", ({ message }) =>
    Effect.succeed(health(false, { status: "not ready", reason: message }))
  )
)

const metrics = Effect.map(PrometheusMetrics.format(), (body) =>
  HttpServerResponse.text(body, { contentType: "text/plain; version=0.0.4; charset=utf-8" })
)

const route = <E, R>(path: `/${string}`, handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
  HttpRouter.add(
    "GET",
    path,
    handler.pipe(
      Effect.tapCause((cause) =>
        Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError(`GET ${path} failed`, cause)
      ),
      // Else each probe's statement would be a trace of its own.
      Effect.withTracerEnabled(false)
    )
  )

/** The routes alone, for a server of one's own. */
const routes = Layer.mergeAll(route("/health/live", live), route("/health/ready", ready), route("/metrics", metrics))

const server = (address: Address): Layer.Layer<HttpServer.HttpServer, HttpServerUnavailable> =>
  Layer.effect(
    HttpServer.HttpServer,
    Effect.gen(function* () {
      const context = yield* Effect.context<never>()
      const node = createServer({ requestTimeout: 10_000, headersTimeout: 5000 })
      const served = yield* NodeHttpServer.make(() => node, { ...address, gracefulShutdownTimeout: "1 second" }).pipe(
        Effect.mapError(({ cause }) => unavailable(address, cause))
      )
      // Out of file descriptors, accepting fails: without a listener that would end the process.
      node.on("error", (error) => Effect.runForkWith(context)(Effect.logWarning("the HTTP server failed", error)))
      // A client that connects and never asks would keep the process from ending.
      yield* Effect.addFinalizer(() => Effect.sync(() => node.closeAllConnections()))
      return served
    })
  )

/** Serves the routes; gives the server, whose address tells the port where `port` is 0. */
export const layer = (
  address: Address
): Layer.Layer<HttpServer.HttpServer, HttpServerUnavailable, DeliveryHealth | Liveness | Store> =>
  HttpRouter.serve(routes, { disableLogger: true }).pipe(
    Layer.provide(Layer.succeed(HttpMiddleware.TracerDisabledWhen, () => true)),
    Layer.provideMerge(server(address))
  )
