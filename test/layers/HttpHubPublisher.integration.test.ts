import { createHmac } from "node:crypto"
import type { ServerResponse } from "node:http"
import { createServer as createTcpServer } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import * as HttpHubPublisher from "../../src/layers/HttpHubPublisher.ts"
import { HubPublisher, PushFailed } from "../../src/services/HubPublisher.ts"
import type { PendingSignal } from "../../src/services/RealtimeOutbox.ts"
import { listen, type Received, receiver } from "../support/Receiver.ts"
import { at } from "../support/Sessions.ts"

const secret = "s3cr3t-key"
const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
const signal: PendingSignal = {
  id: 42n,
  kind: "ConferenceEnded",
  targetKind: "ChatGroup",
  chatId: "c4a70000-0000-4000-8000-000000000001",
  sessionKind: "Conference",
  sessionId: "c0000000-0000-4000-8000-000000000001",
  signal: "Ended",
  headers: { "correlation-id": "b0000000-0000-4000-8000-000000000007", traceparent },
  attempts: 3,
  createdAt: at("2026-03-01T12:00:00Z")
}

const push = (url: URL, row: PendingSignal = signal) =>
  Layer.build(HttpHubPublisher.layer({ url, secret: Redacted.make(secret) })).pipe(
    Effect.flatMap((context) => Context.get(context, HubPublisher).push(row))
  )

const failure = (url: URL, row?: PendingSignal) => Effect.flip(push(url, row))
const answering = (status: number) => (response: ServerResponse) => response.writeHead(status).end()

describe("HttpHubPublisher", () => {
  it.effect("posts exactly seven fields, signs the very bytes it sends, and carries the stored trace (X2)", () =>
    Effect.gen(function* () {
      const { url, received } = yield* receiver(answering(202))
      yield* push(url).pipe(Effect.withSpan("dispatch"))
      assert.strictEqual(received.length, 1)
      const [{ method, path, headers, body }] = received as [Received]
      assert.strictEqual(`${method} ${path}`, "POST /inbox")
      assert.strictEqual(
        body.toString("utf8"),
        '{"id":42,"kind":"ConferenceEnded","targetKind":"ChatGroup","chatId":"c4a70000-0000-4000-8000-000000000001",' +
          '"sessionKind":"Conference","sessionId":"c0000000-0000-4000-8000-000000000001","signal":"Ended"}'
      )
      assert.strictEqual(headers["content-type"], "application/json")
      assert.strictEqual(headers["content-length"], String(body.length))
      assert.strictEqual(headers["x-signature"], `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`)
      assert.strictEqual(headers.traceparent, traceparent)
      assert.notProperty(headers, "b3")
    })
  )

  it.effect("pushes a row whose stored trace context is missing or none without it (X2)", () =>
    Effect.gen(function* () {
      const { url, received } = yield* receiver(answering(200))
      for (const headers of [{}, { traceparent: "" }, { traceparent: `${traceparent}\r\nx-evil: 1` }]) {
        yield* push(url, { ...signal, headers })
      }
      assert.deepStrictEqual(
        received.map(({ headers }) => headers.traceparent ?? headers["x-evil"]),
        [undefined, undefined, undefined]
      )
    })
  )

  for (const status of [200, 201, 202, 204, 299]) {
    it.effect(`takes ${status} for pushed (X2)`, () =>
      Effect.gen(function* () {
        const { url } = yield* receiver(answering(status))
        assert.isUndefined(yield* push(url))
      })
    )
  }

  for (const [status, kind] of [
    ...[408, 425, 429, 500, 502, 503, 504, 599].map((status) => [status, "deferred"] as const),
    ...[400, 402, 409, 410, 413, 422, 451].map((status) => [status, "rejected"] as const)
  ]) {
    it.effect(`takes ${status} for ${kind} (X2)`, () =>
      Effect.gen(function* () {
        const { url, received } = yield* receiver(answering(status))
        const error = yield* failure(url)
        assert.instanceOf(error, PushFailed)
        assert.strictEqual(error.message, `the hub answered ${status}`)
        assert.strictEqual(error.kind, kind)
        assert.strictEqual(received.length, 1)
      })
    )
  }

  for (const [status, advice] of [
    ...[401, 403].map((status) => [status, "it does not accept our signature, check REALTIME_HUB_SECRET"] as const),
    ...[300, 301, 302, 304, 307, 308, 404, 405].map(
      (status) => [status, "nothing takes pushes there, check REALTIME_HUB_URL"] as const
    )
  ]) {
    it.effect(`takes ${status} for misconfigured, which is no fault of the push (X2)`, () =>
      Effect.gen(function* () {
        const { url } = yield* receiver(answering(status))
        const error = yield* failure(url)
        assert.strictEqual(error.kind, "misconfigured")
        assert.strictEqual(error.message, `the hub answered ${status}: ${advice}`)
      })
    )
  }

  it.effect("does not replay the signed push where a redirect points to (X2)", () =>
    Effect.gen(function* () {
      const elsewhere = yield* receiver(answering(200))
      for (const status of [301, 302, 303, 307, 308]) {
        const { url } = yield* receiver((response) =>
          response.writeHead(status, { location: elsewhere.url.href }).end()
        )
        assert.strictEqual((yield* failure(url)).kind, "misconfigured")
      }
      assert.strictEqual(elsewhere.received.length, 0)
    })
  )

  it.effect(
    "ends by its deadline and hangs up when the hub never answers, also where it cannot be interrupted (X2)",
    () =>
      Effect.gen(function* () {
        const arrived = yield* Deferred.make<void>()
        const hungUp = yield* Deferred.make<void>()
        const { url } = yield* receiver((response) => {
          response.on("close", () => Deferred.doneUnsafe(hungUp, Effect.void))
          Deferred.doneUnsafe(arrived, Effect.void)
        })
        const fiber = yield* Effect.forkChild(Effect.uninterruptible(failure(url)), { startImmediately: true })
        yield* Deferred.await(arrived)
        yield* TestClock.adjust("4999 millis")
        assert.isUndefined(fiber.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        const error = yield* Fiber.join(fiber)
        assert.strictEqual(error.message, "the hub did not answer within 5s")
        assert.strictEqual(error.kind, "unavailable")
        yield* Deferred.await(hungUp)
      })
  )

  it.effect("takes a refused or broken connection for a hub that is away (X2)", () =>
    Effect.gen(function* () {
      const nobody = yield* Effect.scoped(listen(createTcpServer()))
      const refused = yield* failure(nobody)
      assert.strictEqual(refused.message, "the request to the hub broke off (ECONNREFUSED)")
      assert.strictEqual(refused.kind, "unavailable")
      const hangsUp = yield* listen(createTcpServer((socket) => socket.on("error", () => {}).destroy()))
      assert.strictEqual((yield* failure(hangsUp)).kind, "unavailable")
    })
  )

  for (const [what, change] of [
    ["an unknown target", { targetKind: "User" }],
    ["an unknown signal", { signal: "Started" }],
    ["an id that is no UUID", { chatId: "general" }],
    ["a number that JSON would round", { id: 2n ** 53n }]
  ] as const) {
    it.effect(`posts no row with ${what}: it would break the contract (X2)`, () =>
      Effect.gen(function* () {
        const { url, received } = yield* receiver(answering(200))
        const error = yield* failure(url, { ...signal, ...change })
        assert.strictEqual(error.kind, "rejected")
        assert.match(error.message, /^the row is no push of the contract: /)
        assert.strictEqual(received.length, 0)
      })
    )
  }
})
