/** A real HTTP server on a free local port that keeps what it received; for whatever posts to a service outside. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo, Server } from "node:net"
import { Effect, type Scope } from "effect"

export const listen = (server: Server): Effect.Effect<URL, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<URL>((resume) => {
      server.listen(0, "127.0.0.1", () =>
        resume(Effect.succeed(new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/inbox`)))
      )
    }),
    () => Effect.sync(() => server.close())
  )

export interface Received {
  readonly method: string | undefined
  readonly path: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** Answers as told once the whole request is in. */
export const receiver = (answer: (response: ServerResponse, request: IncomingMessage) => void) =>
  Effect.gen(function* () {
    const received: Array<Received> = []
    const server = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const { method, url: path, headers } = request
        received.push({ method, path, headers, body: Buffer.concat(chunks) })
        answer(response, request)
      })
    })
    const url = yield* listen(server)
    yield* Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
    return { url, received }
  })
