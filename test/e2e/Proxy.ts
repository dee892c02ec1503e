/** A door in front of the test server, on a port of its own: closed at first, so that the database is away until it opens. */
import { once } from "node:events"
import { connect, createServer, type Socket } from "node:net"
import { Effect } from "effect"

const portOf = (address: ReturnType<ReturnType<typeof createServer>["address"]>) =>
  typeof address === "object" && address !== null ? address.port : 0

/** A server on any free port. */
export const listening = Effect.acquireRelease(
  Effect.promise(async () => {
    const server = createServer().listen(0, "127.0.0.1")
    await once(server, "listening")
    return { server, port: portOf(server.address()) }
  }),
  ({ server }) => Effect.sync(() => server.close())
)

/** Leads to the server of the url once it is open. */
export const closedDoor = Effect.fnUntraced(function* (databaseUrl: string) {
  const { port } = yield* Effect.scoped(listening)
  const url = new URL(databaseUrl)
  const target = Number(url.port)
  url.port = String(port)
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1")
    for (const socket of [client, upstream]) sockets.add(socket.on("error", () => {}))
    client.pipe(upstream)
    upstream.pipe(client)
  })
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      server.close()
      for (const socket of sockets) socket.destroy()
    })
  )
  const open = Effect.promise(async () => {
    server.listen(port, "127.0.0.1")
    await once(server, "listening")
  })
  return { url: url.href, open }
})
