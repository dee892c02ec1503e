/**
 * A network between a client and its brokers that loses what a test wants it to lose. Each broker has a port here; the
 * ports in Metadata answers are written anew, so that a client that has begun here stays here.
 */
import { once } from "node:events"
import { connect, createServer, type Socket } from "node:net"
import { Effect, type Scope } from "effect"
import { apply, carry, makeState, type Route, resetLink, type Seen, type State } from "./KafkaLink.ts"

export interface KafkaProxy {
  readonly brokers: ReadonlyArray<string>
  /**
   * Loses the next answers to Produce requests, which the broker has carried out by then. By silence the client has to run
   * into its time-out; by a reset it knows at once that the connection is gone.
   */
  readonly loseAnswers: (count: number, by?: "silence" | "reset") => Effect.Effect<void>
  /** Carries nothing any more and says nothing about it, on connections old and new; to one broker (1..n) or to all. */
  readonly silence: (what?: "everything" | "answers", broker?: number) => Effect.Effect<void>
  /** Carries again; what was under way comes through, as with TCP. */
  readonly mend: Effect.Effect<void>
  /** Resets the connections that there are. */
  readonly reset: (broker?: number) => Effect.Effect<void>
  readonly seen: () => Seen
  readonly awaitSeen: (isEnough: (seen: Seen) => boolean) => Effect.Effect<void>
}

const listen = (onClient: (client: Socket) => void) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = createServer(onClient).listen(0, "127.0.0.1")
      await once(server, "listening")
      const address = server.address()
      return { server, port: typeof address === "object" && address !== null ? address.port : 0 }
    }),
    ({ server }) => Effect.sync(() => server.close())
  )

const controls = (state: State, brokers: ReadonlyArray<string>): KafkaProxy => {
  const those = (broker?: number) => [...state.links].filter((link) => broker === undefined || link.broker === broker)
  const ids = brokers.map((_, index) => index + 1)
  return {
    brokers,
    loseAnswers: (count, by = "silence") => Effect.sync(() => Object.assign(state.losing, { left: count, by })),
    silence: (what = "everything", broker) =>
      Effect.sync(() => {
        for (const id of broker === undefined ? ids : [broker]) state.silent.set(id, what)
        for (const link of those(broker)) apply(state, link)
      }),
    mend: Effect.sync(() => {
      state.silent.clear()
      for (const link of those()) apply(state, link)
    }),
    reset: (broker) => Effect.sync(() => those(broker).forEach(resetLink)),
    seen: state.seen,
    awaitSeen: (isEnough) =>
      Effect.callback<void>((resume) => {
        const look = () => {
          if (!isEnough(state.seen())) return
          state.changes.off("change", look)
          resume(Effect.void)
        }
        state.changes.on("change", look)
        look()
        return Effect.sync(() => state.changes.off("change", look))
      })
  }
}

/** In front of these brokers, which must be all of their cluster, in the order of their ids. */
export const kafkaProxy = Effect.fnUntraced(function* (
  upstreams: ReadonlyArray<string>
): Effect.fn.Return<KafkaProxy, never, Scope.Scope> {
  const state = makeState()
  const routes: Array<Route> = []
  yield* Effect.forEach(upstreams, (upstream, index) => {
    const upstreamPort = Number(upstream.split(":").at(-1))
    return listen((client) => {
      const link = { broker: index + 1, client, upstream: connect(upstreamPort, "127.0.0.1") }
      carry(state, link, routes)
    }).pipe(Effect.map(({ port }) => routes.push({ upstreamPort, port })))
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => [...state.links].forEach(resetLink)))
  return controls(
    state,
    routes.map(({ port }) => `127.0.0.1:${port}`)
  )
})
