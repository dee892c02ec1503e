/**
 * What `KafkaProxy` does with one connection to one broker: carries it frame by frame, loses what is to be lost, and writes
 * the ports in Metadata answers anew.
 */
import { EventEmitter } from "node:events"
import type { Socket } from "node:net"
import { apiKey, brokersIn, correlationIdOf, frames, requestHead } from "./Wire.ts"

/** What was seen of Produce requests so far. */
export interface Seen {
  /** Passed on to a broker. */
  readonly produceRequests: number
  readonly produceAnswers: number
  readonly lostAnswers: number
}

export interface Link {
  readonly broker: number
  readonly client: Socket
  readonly upstream: Socket
}

export interface Route {
  readonly upstreamPort: number
  readonly port: number
}

export const makeState = () => {
  const changes = new EventEmitter().setMaxListeners(0)
  const links = new Set<Link>()
  const silent = new Map<number, "everything" | "answers">()
  const losing: { left: number; by: "silence" | "reset" } = { left: 0, by: "silence" }
  let seen: Seen = { produceRequests: 0, produceAnswers: 0, lostAnswers: 0 }
  return {
    changes,
    links,
    silent,
    losing,
    seen: () => seen,
    count: (what: keyof Seen) => {
      seen = { ...seen, [what]: seen[what] + 1 }
      changes.emit("change")
    }
  }
}

export type State = ReturnType<typeof makeState>

/** Lets a link carry what it may carry at present. A socket that is not read from says nothing to its other end. */
export const apply = ({ silent }: State, { broker, client, upstream }: Link) => {
  const what = silent.get(broker)
  if (what === "everything") client.pause()
  else client.resume()
  if (what === undefined) upstream.resume()
  else upstream.pause()
}

export const resetLink = ({ client, upstream }: Link) => {
  client.resetAndDestroy()
  upstream.resetAndDestroy()
}

/** Clients go by what Metadata says: to our ports, and to a broker where a mock names a controller that is none. */
const rewriteMetadata = (answer: Buffer, version: number, routes: ReadonlyArray<Route>) => {
  const { brokers, controllerAt } = brokersIn(answer, version)
  for (const { port, portAt } of brokers) {
    const route = routes.find(({ upstreamPort }) => upstreamPort === port)
    if (route !== undefined) answer.writeInt32BE(route.port, portAt)
  }
  const [first] = brokers
  if (controllerAt === undefined || first === undefined) return
  const controller = answer.readInt32BE(controllerAt)
  if (!brokers.some(({ id }) => id === controller)) answer.writeInt32BE(first.id, controllerAt)
}

/** True: the answer is lost. */
const isLost = ({ losing, count }: State): boolean => {
  count("produceAnswers")
  if (losing.left === 0) return false
  losing.left -= 1
  count("lostAnswers")
  return true
}

export const carry = (state: State, link: Link, routes: ReadonlyArray<Route>) => {
  const { client, upstream } = link
  const asked = new Map<number, { readonly apiKey: number; readonly apiVersion: number }>()
  const onRequest = (request: Buffer) => {
    const head = requestHead(request)
    asked.set(head.correlationId, head)
    upstream.write(request)
    if (head.apiKey === apiKey.produce) state.count("produceRequests")
  }
  const onAnswer = (answer: Buffer) => {
    const head = asked.get(correlationIdOf(answer))
    asked.delete(correlationIdOf(answer))
    if (head?.apiKey === apiKey.metadata) rewriteMetadata(answer, head.apiVersion, routes)
    if (head?.apiKey !== apiKey.produce || !isLost(state)) client.write(answer)
    else if (state.losing.by === "reset") resetLink(link)
  }
  client.on("data", frames(onRequest))
  upstream.on("data", frames(onAnswer))
  for (const [one, other] of [
    [client, upstream],
    [upstream, client]
  ] as const) {
    one.on("error", () => {})
    one.on("end", () => other.end())
    one.on("close", () => {
      other.destroy()
      state.links.delete(link)
    })
  }
  state.links.add(link)
  apply(state, link)
}
