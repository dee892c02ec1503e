import { once } from "node:events"
import { connect, createServer } from "node:net"
import { it } from "@effect/vitest"
import {
  type Context,
  Deferred,
  Duration,
  Effect,
  Exit,
  Fiber,
  Layer,
  Logger,
  Metric,
  References,
  Scope,
  Tracer
} from "effect"
import { HttpServer } from "effect/http"
import { describe, expect } from "vitest"
import * as HttpApi from "../../src/program/HttpApi.ts"
import * as DeliveryHealth from "../../src/services/DeliveryHealth.ts"
import { Liveness } from "../../src/services/Liveness.ts"
import { Store } from "../../src/services/Store.ts"
import { StoreUnavailable } from "../../src/services/StoreError.ts"

const alive = Effect.succeed({ alive: true, silentFor: Duration.zero })
const local = { host: "127.0.0.1", port: 0 }

const services = (
  check: Context.Service.Shape<typeof Liveness>["check"] = alive,
  ping: Context.Service.Shape<typeof Store>["ping"] = Effect.void,
  outbox: DeliveryHealth.ReceiverHealth = { status: "up" }
) =>
  Layer.mergeAll(
    Layer.succeed(Liveness, { beat: Effect.void, check }),
    Layer.succeed(Store, { ping }),
    Layer.effectDiscard(
      Effect.flatMap(DeliveryHealth.DeliveryHealth, (health) => health.report("outbox", outbox))
    ).pipe(Layer.provideMerge(DeliveryHealth.layer))
  )

const baseUrl = Effect.map(HttpServer.HttpServer, ({ address }) => {
  if (address._tag === "UnixPathAddress") throw new Error("a TCP address was expected")
  return `http://127.0.0.1:${address.port}`
})

const get = (path: string, init: RequestInit = {}) =>
  Effect.gen(function* () {
    const url = (yield* baseUrl) + path
    const response = yield* Effect.promise(() => fetch(url, init))
    return { response, body: yield* Effect.promise(() => response.text()) }
  })

const served = <A, E>(
  use: Effect.Effect<A, E, HttpServer.HttpServer | Scope.Scope>,
  dependencies: Layer.Layer<DeliveryHealth.DeliveryHealth | Liveness | Store> = services()
) => use.pipe(Effect.provide(HttpApi.layer(local).pipe(Layer.provide(dependencies))))

describe("GET /health/live", () => {
  it.live("answers 200 while the loop turns", () =>
    served(
      Effect.gen(function* () {
        const { response, body } = yield* get("/health/live")
        expect([response.status, JSON.parse(body)]).toEqual([200, { status: "live" }])
      })
    )
  )

  it.live("answers 503 and since when once no cycle was tried for too long", () =>
    served(
      Effect.gen(function* () {
        const { response, body } = yield* get("/health/live")
        expect([response.status, JSON.parse(body)]).toEqual([
          503,
          { status: "stuck", reason: "no cycle was tried for 2m" }
        ])
      }),
      services(Effect.succeed({ alive: false, silentFor: Duration.minutes(2) }))
    )
  )
})

describe("GET /health/ready", () => {
  it.live("answers 200 while the database answers", () =>
    served(
      Effect.gen(function* () {
        const { response, body } = yield* get("/health/ready")
        const delivery = { outbox: { status: "up" }, realtime: { status: "not-configured" } }
        expect([response.status, JSON.parse(body)]).toEqual([200, { status: "ready", delivery }])
      })
    )
  )

  it.live("answers 200 and says degraded, with the reason, while the broker is away (X1)", () =>
    served(
      Effect.gen(function* () {
        const { response, body } = yield* get("/health/ready")
        const outbox = { status: "degraded", reason: "no broker" }
        const delivery = { outbox, realtime: { status: "not-configured" } }
        expect([response.status, JSON.parse(body)]).toEqual([200, { status: "degraded", delivery }])
      }),
      services(alive, Effect.void, { status: "degraded", reason: "no broker" })
    )
  )

  it.live("answers 503 with the reason while the database is away, and says live all the same", () =>
    served(
      Effect.gen(function* () {
        const { response, body } = yield* get("/health/ready")
        expect([response.status, JSON.parse(body)]).toEqual([
          503,
          { status: "not ready", reason: "ping: connection refused" }
        ])
        expect((yield* get("/health/live")).response.status).toBe(200)
      }),
      services(
        alive,
        Effect.fail(new StoreUnavailable({ operation: "ping", reason: "connection refused", isRetryable: true }))
      )
    )
  )
})

describe("GET /metrics", () => {
  it.live("answers in Prometheus' text format (M)", () =>
    served(
      Effect.gen(function* () {
        yield* Metric.update(Metric.counter("messenger_test_total", { description: "a test" }), 3)
        const { response, body } = yield* get("/metrics")
        expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8")
        expect(body).toContain("# TYPE messenger_test_total counter\nmessenger_test_total 3\n")
      })
    )
  )
})

describe("the server", () => {
  it.live.each([
    ["GET", "/"],
    ["GET", "/health"],
    ["POST", "/health/live"],
    ["DELETE", "/metrics"]
  ] as const)("answers 404 to %s %s", ([method, path]) =>
    served(
      Effect.gen(function* () {
        expect((yield* get(path, { method })).response.status).toBe(404)
      })
    )
  )

  it.live("answers HEAD as GET, without a body", () =>
    served(
      Effect.gen(function* () {
        const { response, body } = yield* get("/health/live", { method: "HEAD" })
        expect([response.status, body]).toEqual([200, ""])
      })
    )
  )

  it.live("answers 500 to a defect and logs it", () => {
    const logged: Array<string> = []
    const logger = Logger.make<unknown, void>(({ logLevel, message, cause }) => {
      logged.push(`${logLevel} ${String(message)} ${cause.reasons.map((reason) => reason._tag).join()}`)
    })
    return served(
      Effect.gen(function* () {
        expect((yield* get("/health/ready")).response.status).toBe(500)
        expect(logged).toEqual([expect.stringMatching(/^Info/), "Error GET /health/ready failed Die"])
      }),
      services(alive, Effect.die(new Error("bug")))
    ).pipe(Effect.provide(Logger.layer([logger])), Effect.provideService(References.MinimumLogLevel, "Info"))
  })

  it.live("leaves no trace of a probe, nor of what it asks the database", () => {
    const spans: Array<string> = []
    const tracer = Tracer.make({
      span: (options) => {
        spans.push(options.name)
        return new Tracer.NativeSpan(options)
      }
    })
    return served(
      Effect.gen(function* () {
        expect((yield* get("/health/ready")).response.status).toBe(200)
        expect(spans).toEqual(["probe of the tracer"])
      }),
      services(alive, Effect.void.pipe(Effect.withSpan("select 1")))
    ).pipe(
      (test) => Effect.andThen(Effect.void.pipe(Effect.withSpan("probe of the tracer")), test),
      Effect.provideService(Tracer.Tracer, tracer)
    )
  })

  it.live("lets an answer that is under way finish before it stops", () =>
    Effect.gen(function* () {
      const entered = yield* Deferred.make<void>()
      const answer = yield* Deferred.make<void>()
      const scope = yield* Scope.make()
      const ping = Deferred.succeed(entered, undefined).pipe(Effect.andThen(Deferred.await(answer)))
      const context = yield* Layer.buildWithScope(
        HttpApi.layer(local).pipe(Layer.provide(services(alive, ping))),
        scope
      )
      const request = yield* Effect.forkChild(get("/health/ready").pipe(Effect.provide(context)))
      yield* Deferred.await(entered)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      yield* Deferred.succeed(answer, undefined)
      expect((yield* request.pipe(Fiber.join)).response.status).toBe(200)
      yield* Fiber.join(closing)
    })
  )

  it.live("stops within about a second in spite of an answer that never comes and a client that never asks", () =>
    Effect.gen(function* () {
      const entered = yield* Deferred.make<void>()
      const scope = yield* Scope.make()
      const ping = Deferred.succeed(entered, undefined).pipe(Effect.andThen(Effect.never))
      const context = yield* Layer.buildWithScope(
        HttpApi.layer(local).pipe(Layer.provide(services(alive, ping))),
        scope
      )
      const port = Number(new URL(yield* baseUrl.pipe(Effect.provide(context))).port)
      const silent = connect(port, "127.0.0.1")
      silent.on("error", () => {})
      yield* Effect.promise(() => once(silent, "connect"))
      const disconnected = once(silent, "close")
      const request = yield* Effect.forkChild(get("/health/ready").pipe(Effect.provide(context)))
      yield* Deferred.await(entered)
      const [took] = yield* Effect.timed(Scope.close(scope, Exit.void))
      expect(Duration.toMillis(took)).toBeLessThan(8000)
      expect((yield* Fiber.join(request)).response.status).toBe(503)
      yield* Effect.promise(() => disconnected)
    })
  )

  const failure = (address: { readonly host: string; readonly port: number }) =>
    Layer.build(HttpApi.layer(address).pipe(Layer.provide(services()))).pipe(Effect.flip, Effect.scoped)

  it.live("says which port is in use and what to do", () =>
    Effect.gen(function* () {
      const other = createServer().listen(0, "127.0.0.1")
      yield* Effect.promise(() => once(other, "listening"))
      const address = other.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      const error = yield* failure({ host: "127.0.0.1", port })
      expect(error._tag).toBe("HttpServerUnavailable")
      expect(error.message).toBe(
        `the HTTP server cannot listen with HTTP_HOST=127.0.0.1 HTTP_PORT=${port}: the port is in use; ` +
          "stop the process that has it or set HTTP_PORT to another one (0 takes any free port)"
      )
      other.close()
    })
  )

  it.live("says that the host is no address of this machine", () =>
    Effect.gen(function* () {
      const error = yield* failure({ host: "192.0.2.1", port: 0 })
      expect(error.message).toContain("HTTP_HOST=192.0.2.1")
      expect(error.message).toContain("no address of this machine")
    })
  )
})
