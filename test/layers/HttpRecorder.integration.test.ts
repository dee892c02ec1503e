import { createHmac } from "node:crypto"
import { createServer as createTcpServer } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { ConferenceId, RecordingId } from "../../src/domain/ConferenceSession.ts"
import type { StopRequest } from "../../src/domain/StopRequest.ts"
import * as HttpRecorder from "../../src/layers/HttpRecorder.ts"
import { Recorder, RecorderUnreachable } from "../../src/services/Recorder.ts"
import { listen, type Received, receiver } from "../support/Receiver.ts"

const secret = "s3cr3t-key"
const request: StopRequest = {
  recordingId: RecordingId.make("3f0c0a52-6a5e-4b7e-9a5e-000000000001"),
  externalRef: 'EG_"ключ"\n😀',
  conferenceId: ConferenceId.make("3f0c0a52-6a5e-4b7e-9a5e-000000000002"),
  reason: "EmptyTimeout"
}

// Built in the test's scope: a closed connection is then the request's doing, not that of the layer's end.
const requestStop = (url: URL) =>
  Layer.build(HttpRecorder.layer({ url, secret: Redacted.make(secret) })).pipe(
    Effect.flatMap((context) => Context.get(context, Recorder).requestStop(request))
  )

const refusal = (url: URL) => Effect.flip(requestStop(url))

describe("HttpRecorder", () => {
  it.effect("posts exactly four fields and signs the very bytes it sends (R10)", () =>
    Effect.gen(function* () {
      const { url, received } = yield* receiver((response) => response.writeHead(202).end())
      assert.strictEqual(yield* requestStop(url), "stopped")
      assert.strictEqual(received.length, 1)
      const [{ method, path, headers, body }] = received as [Received]
      assert.strictEqual(`${method} ${path}`, "POST /inbox")
      assert.deepStrictEqual(JSON.parse(body.toString("utf8")), { ...request })
      assert.deepStrictEqual(Object.keys(JSON.parse(body.toString("utf8"))), [
        "recordingId",
        "externalRef",
        "conferenceId",
        "reason"
      ])
      assert.strictEqual(headers["idempotency-key"], request.recordingId)
      assert.strictEqual(headers["content-type"], "application/json")
      assert.strictEqual(headers["content-length"], String(body.length))
      assert.strictEqual(headers["x-signature"], `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`)
    })
  )

  for (const status of [200, 201, 202, 204, 299, 404, 409, 410]) {
    it.effect(`takes ${status} for done (R10)`, () =>
      Effect.gen(function* () {
        const { url } = yield* receiver((response) => response.writeHead(status).end())
        assert.strictEqual(yield* requestStop(url), "stopped")
      })
    )
  }

  for (const [status, isRetryable] of [
    ...[408, 425, 429, 500, 502, 503, 504, 599].map((status) => [status, true] as const),
    ...[300, 301, 302, 304, 307, 308, 400, 401, 403, 405, 412, 413, 422, 451].map((status) => [status, false] as const)
  ]) {
    it.effect(`${isRetryable ? "may repeat" : "does not repeat"} a request answered ${status} (R10)`, () =>
      Effect.gen(function* () {
        const { url, received } = yield* receiver((response) => response.writeHead(status).end())
        const error = yield* refusal(url)
        assert.instanceOf(error, RecorderUnreachable)
        assert.strictEqual(error.message, `the recorder answered ${status}`)
        assert.strictEqual(error.isRetryable, isRetryable)
        assert.strictEqual(received.length, 1)
      })
    )
  }

  it.effect("does not replay the signed request where a redirect points to (R10)", () =>
    Effect.gen(function* () {
      const elsewhere = yield* receiver((response) => response.writeHead(200).end())
      for (const status of [301, 302, 303, 307, 308]) {
        const { url } = yield* receiver((response) =>
          response.writeHead(status, { location: elsewhere.url.href }).end()
        )
        assert.isFalse((yield* refusal(url)).isRetryable)
      }
      assert.strictEqual(elsewhere.received.length, 0)
    })
  )

  it.effect("ends by its deadline and hangs up when the recorder never answers (R10)", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<void>()
      const hungUp = yield* Deferred.make<void>()
      const { url } = yield* receiver((response) => {
        response.on("close", () => Deferred.doneUnsafe(hungUp, Effect.void))
        Deferred.doneUnsafe(arrived, Effect.void)
      })
      const fiber = yield* Effect.forkChild(refusal(url), { startImmediately: true })
      yield* Deferred.await(arrived)
      yield* TestClock.adjust("4999 millis")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      const error = yield* Fiber.join(fiber)
      assert.strictEqual(error.message, "the recorder did not answer within 5s")
      assert.isTrue(error.isRetryable)
      yield* Deferred.await(hungUp)
    })
  )

  it.effect("hangs up at once when it is interrupted (L5)", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<void>()
      const hungUp = yield* Deferred.make<void>()
      const { url } = yield* receiver((response) => {
        response.on("close", () => Deferred.doneUnsafe(hungUp, Effect.void))
        Deferred.doneUnsafe(arrived, Effect.void)
      })
      const fiber = yield* Effect.forkChild(requestStop(url), { startImmediately: true })
      yield* Deferred.await(arrived)
      yield* Fiber.interrupt(fiber)
      yield* Deferred.await(hungUp)
    })
  )

  it.effect("may repeat a request whose connection was refused, naming the code only (R10)", () =>
    Effect.gen(function* () {
      const url = yield* Effect.scoped(listen(createTcpServer()))
      const error = yield* refusal(url)
      assert.strictEqual(error.message, "the request to the recorder broke off (ECONNREFUSED)")
      assert.isTrue(error.isRetryable)
    })
  )

  it.effect("may repeat a request whose connection broke or whose answer is not HTTP", () =>
    Effect.gen(function* () {
      const hangsUp = yield* listen(createTcpServer((socket) => socket.on("error", () => {}).destroy()))
      assert.isTrue((yield* refusal(hangsUp)).isRetryable)
      const garbage = yield* listen(
        createTcpServer((socket) => socket.on("error", () => {}).end("\u0000\u0001 not http\r\n\r\n"))
      )
      assert.isTrue((yield* refusal(garbage)).isRetryable)
    })
  )

  it.effect("does not mind a garbage body", () =>
    Effect.gen(function* () {
      const { url } = yield* receiver((response) =>
        response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" }).end("\u0000{{")
      )
      assert.strictEqual(yield* requestStop(url), "stopped")
    })
  )

  it.effect("answers by the status alone and hangs up on a body without end (R10)", () =>
    Effect.gen(function* () {
      const hungUp = yield* Deferred.make<number>()
      const chunk = Buffer.alloc(64 * 1024)
      const { url } = yield* receiver((response, request) => {
        let written = 0
        const pour = () => {
          do written += chunk.length
          while (response.write(chunk))
        }
        response.on("drain", pour).on("close", () => {
          request.socket.destroy()
          Deferred.doneUnsafe(hungUp, Effect.succeed(written))
        })
        response.writeHead(503)
        pour()
      })
      assert.strictEqual((yield* refusal(url)).message, "the recorder answered 503")
      assert.isBelow(yield* Deferred.await(hungUp), 64 * 1024 * 1024)
    })
  )

  it.effect("sends credentials of the url as a header and tells them to nobody (R10)", () =>
    Effect.gen(function* () {
      const { url, received } = yield* receiver((response) => response.writeHead(403).end())
      url.username = "us er"
      url.password = "pa:ss"
      url.search = "?token=t0ken"
      const error = yield* refusal(url)
      assert.strictEqual(received[0]?.headers.authorization, `Basic ${Buffer.from("us er:pa:ss").toString("base64")}`)
      assert.strictEqual(received[0]?.path, "/inbox?token=t0ken")
      for (const text of [error.message, JSON.stringify(error), String(error.stack)]) {
        assert.notMatch(text, /us.{0,3}er:|pa:ss|t0ken|s3cr3t/)
      }
    })
  )
})
