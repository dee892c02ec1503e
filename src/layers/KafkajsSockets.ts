/**
 * The sockets of one kafkajs client, so that they end with it: kafkajs itself only half-closes them, forgets those that do
 * not answer, and reconnects for a send that was given up.
 */
import { connect, isIP, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import { Effect } from "effect"
import type { ISocketFactory } from "kafkajs"

const keepAliveDelay = 60_000

export interface Sockets {
  readonly factory: ISocketFactory
  /** Cuts every connection and makes no other. */
  readonly close: Effect.Effect<void>
  readonly isClosed: () => boolean
}

export const makeSockets = (): Sockets => {
  const open = new Set<Socket>()
  let closed = false
  return {
    factory: ({ host, port, ssl, onConnect }) => {
      if (closed) throw new Error("the client was given up")
      const socket = ssl
        ? connectTls({ host, port, ...(isIP(host) === 0 ? { servername: host } : {}), ...ssl }, onConnect)
        : connect({ host, port }, onConnect)
      open.add(socket)
      socket.once("close", () => open.delete(socket))
      return socket.setNoDelay(true).setKeepAlive(true, keepAliveDelay)
    },
    close: Effect.sync(() => {
      closed = true
      // Without an error kafkajs would not notice that the socket is gone.
      for (const socket of open) socket.destroy(new Error("the client was given up"))
    }),
    isClosed: () => closed
  }
}
