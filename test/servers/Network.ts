/**
 * A network between a worker and its server that can stop to carry: nothing is refused and nothing reset, but nothing
 * arrives either, not even that a side has closed. What was under way comes through when it is mended, as with TCP.
 */
import { once } from "node:events"
import { connect, createServer, type Socket } from "node:net"
import { Deferred, Effect } from "effect"

/** What is cut: all links, or those of one `application_name`. */
type Cut = "everything" | { readonly applicationName: string }

/** Cuts when a client's message holds `text`: before it gets through, or after it, so that only its answer is lost. */
export interface Trigger {
  readonly text: string
  readonly lost: "the message" | "its answer"
  readonly cut: Cut
}

interface Link {
  applicationName: string | undefined
  /** What waits for the network to be mended, in order. */
  readonly held: Array<() => void>
}

const makeState = () => {
  const links = new Set<Link>()
  let cut: Cut | undefined
  let armed: (Trigger & { readonly fire: () => void }) | undefined
  const isCut = (link: Link) =>
    cut === "everything" || (cut !== undefined && link.applicationName === cut.applicationName)
  const pass = (link: Link, action: () => void) => {
    if (isCut(link)) link.held.push(action)
    else action()
  }
  const trigger = (moment: Trigger["lost"], message: string) => {
    if (armed === undefined || armed.lost !== moment || !message.includes(armed.text)) return
    cut = armed.cut
    armed.fire()
    armed = undefined
  }
  return {
    links,
    pass,
    carry: (link: Link, chunk: Buffer, send: () => void) => {
      const message = chunk.toString("latin1")
      link.applicationName ??= /application_name\0([^\0]*)\0/.exec(message)?.[1]
      trigger("the message", message)
      pass(link, send)
      trigger("its answer", message)
    },
    arm: (next: NonNullable<typeof armed>) => {
      armed = next
    },
    mend: () => {
      cut = undefined
      for (const link of links) for (const action of link.held.splice(0)) action()
    }
  }
}

type State = ReturnType<typeof makeState>

const join = (state: State, client: Socket, server: Socket) => {
  const link: Link = { applicationName: undefined, held: [] }
  state.links.add(link)
  client.on("data", (chunk) => state.carry(link, chunk, () => server.write(chunk)))
  server.on("data", (chunk) => state.pass(link, () => client.write(chunk)))
  for (const [socket, other] of [
    [client, server],
    [server, client]
  ] as const) {
    socket.on("error", () => {})
    socket.on("close", () => state.pass(link, () => other.destroy()))
  }
}

/** In front of the server of `databaseUrl`, until the scope ends. */
export const before = Effect.fnUntraced(function* (databaseUrl: string) {
  const url = new URL(databaseUrl)
  const target = Number(url.port)
  const state = makeState()
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1")
    sockets.add(client).add(upstream)
    join(state, client, upstream)
  }).listen(0, "127.0.0.1")
  yield* Effect.promise(() => once(server, "listening"))
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      server.close()
      for (const socket of sockets) socket.destroy()
    })
  )
  const address = server.address()
  url.port = String(typeof address === "object" && address !== null ? address.port : 0)
  return {
    url: url.href,
    /** Waits until the trigger has met its message and the network is cut. */
    cutAt: Effect.fnUntraced(function* (trigger: Trigger) {
      const reached = yield* Deferred.make<void>()
      state.arm({ ...trigger, fire: () => Deferred.doneUnsafe(reached, Effect.void) })
      yield* Deferred.await(reached)
    }),
    mend: Effect.sync(state.mend)
  }
})
