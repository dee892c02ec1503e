/**
 * Ports that stay free while nobody listens on them: a node that was stopped comes back on its own ones. So they are taken
 * from below the range in which the system finds ports for outgoing connections.
 */
import { once } from "node:events"
import { createServer } from "node:net"
import { Effect } from "effect"

const lowest = 20_000
const count = 12_000
const given = new Set<number>()

const isFree = async (port: number) => {
  const server = createServer().listen(port, "127.0.0.1")
  try {
    await once(server, "listening")
    return true
  } catch {
    return false
  } finally {
    server.close()
  }
}

const findPort = async (): Promise<number> => {
  const port = lowest + Math.floor(Math.random() * count)
  if (given.has(port)) return findPort()
  given.add(port)
  return (await isFree(port)) ? port : findPort()
}

export const freePort = Effect.promise(findPort)
