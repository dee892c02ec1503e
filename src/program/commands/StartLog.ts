/** What the start log says, in plain words: which database, which options, what is not configured and what that means. */
import { isIPv6 } from "node:net"
import { Effect, Option } from "effect"
import * as Settings from "../../services/Settings.ts"
import { version } from "./Version.ts"

export const works = ["reaper", "outbox", "realtime"] as const
/** What `run --only` leaves of the work. */
export type Work = (typeof works)[number]

const onReaper = ({ callsEnabled, recorder }: Settings.Settings): ReadonlyArray<string> => {
  if (!callsEnabled) {
    return ["CONFERENCE_CALLS_ENABLED is false: no signal goes to the media stack, rooms left over are still closed"]
  }
  return Option.isNone(recorder) ? ["no recorder is configured (RECORDER_URL): stop signals are only logged"] : []
}

const onOutbox = ({ kafka }: Settings.Settings): ReadonlyArray<string> => [
  Option.match(kafka, {
    onNone: () => "Kafka is not configured (KAFKA_BROKERS): events wait in messenger.outbox_messages",
    onSome: ({ brokers, client }) => `events go to Kafka at ${brokers.join(", ")} (client ${client})`
  })
]

const onRealtime = ({ hub }: Settings.Settings): ReadonlyArray<string> => [
  Option.match(hub, {
    onNone: () => "no realtime hub is configured (REALTIME_HUB_URL): pushes wait in messenger.realtime_outbox",
    onSome: ({ url }) => `pushes go to the hub at ${new URL(url).origin}`
  })
]

const described = { reaper: onReaper, outbox: onOutbox, realtime: onRealtime }

const plainWords = (settings: Settings.Settings, does: ReadonlyArray<Work>): ReadonlyArray<string> => [
  ...works.flatMap((work) => (does.includes(work) ? described[work](settings) : [`left out (--only): ${work}`])),
  ...settings.telemetryOff
]

// What listens everywhere is reached here; a URL has IPv6 in brackets.
const urlHost = (host: string): string => {
  if (host === "0.0.0.0" || host === "::") return "localhost"
  return isIPv6(host) ? `[${host}]` : host
}

export const logStart = Effect.fnUntraced(function* (
  settings: Settings.Settings,
  database: string,
  does: ReadonlyArray<Work>
) {
  yield* Effect.logInfo(`conference-room-reaper ${version} starts`).pipe(
    Effect.annotateLogs({ instance: settings.reaper.instance, node: process.version })
  )
  yield* Effect.logInfo(`database: ${database}`)
  const { host, port } = settings.http
  const origin = `http://${urlHost(host)}:${port}`
  // With port 0 only the server's own line, "Listening on …", knows the port.
  if (port !== 0)
    yield* Effect.logInfo(`health: ${origin}/health/live and ${origin}/health/ready, metrics: ${origin}/metrics`)
  const options = Settings.describe(settings).filter(([name]) => /^(REAPER_|CONFERENCE_)/.test(name))
  yield* Effect.logInfo("options in force").pipe(
    Effect.annotateLogs(Object.fromEntries(options.map(([name, value]) => [name, value])))
  )
  for (const warning of settings.warnings) yield* Effect.logWarning(warning)
  for (const line of plainWords(settings, does)) yield* Effect.logInfo(line)
})
