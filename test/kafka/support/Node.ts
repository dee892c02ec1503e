/**
 * One KRaft node, broker and controller in one: a folder, two ports, and a JVM that can be ended and begun again on them.
 * Whatever state it is in, it is gone with the scope.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, copyFileSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schedule } from "effect"
import { type Distribution, javaOptions } from "./Distribution.ts"
import { KafkaUnavailable } from "./KafkaUnavailable.ts"
import { brokersKnownTo } from "./Wire.ts"

export interface Place {
  readonly id: number
  readonly folder: string
  readonly distribution: Distribution
  readonly port: number
  /** server.properties beside what every node has. */
  readonly properties: Readonly<Record<string, string | number>>
}

const files = (folder: string) => ({
  properties: join(folder, "server.properties"),
  log: join(folder, "log"),
  data: join(folder, "data")
})

/** As `StorageTool format` leaves a folder; it holds no more than these two files. */
export const format = (place: Place, clusterId: string) => {
  const { data, properties } = files(place.folder)
  mkdirSync(data, { recursive: true })
  copyFileSync(place.distribution.bootstrapCheckpoint, join(data, "bootstrap.checkpoint"))
  const meta = { version: 1, "cluster.id": clusterId, "node.id": place.id }
  writeFileSync(join(data, "meta.properties"), asText(meta))
  writeFileSync(properties, asText({ ...place.properties, "node.id": place.id, "log.dirs": data }))
}

const asText = (properties: Place["properties"]) =>
  Object.entries(properties)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("")

// Linux ends the broker with the process that has started it, however that ends: no run leaves brokers behind.
const withParent = existsSync("/usr/bin/setpriv") ? ["/usr/bin/setpriv", "--pdeathsig", "KILL"] : []

const launch = ({ folder, distribution }: Place) => {
  const { log, properties } = files(folder)
  const target = openSync(log, "a")
  const logging = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true"]
  const java = ["java", ...javaOptions, ...logging, "-cp", distribution.classPath, "kafka.Kafka", properties]
  const [program = "java", ...args] = [...withParent, ...java]
  const child = spawn(program, args, { cwd: folder, stdio: ["ignore", target, target] })
  closeSync(target)
  return child
}

const isRunning = (child: ChildProcess | undefined): child is ChildProcess =>
  child?.pid !== undefined && child.exitCode === null && child.signalCode === null

const signalled = (child: ChildProcess, signal: NodeJS.Signals) =>
  Effect.promise(async () => {
    const gone = once(child, "exit")
    child.kill(signal)
    await gone
  })

export const makeNode = (place: Place) => {
  let child: ChildProcess | undefined
  const unavailable = (what: string) =>
    new KafkaUnavailable({
      message: `node ${place.id} ${what}: ${readFileSync(files(place.folder).log, "utf8").slice(-4_000)}`
    })
  const spawned = Effect.sync(() => {
    if (!isRunning(child)) child = launch(place)
  })
  const end = (signal: NodeJS.Signals) =>
    Effect.suspend(() => (isRunning(child) ? signalled(child, signal) : Effect.void))
  const knows = (ids: ReadonlyArray<number>) =>
    Effect.flatMap(brokersKnownTo(place.port), (known) =>
      ids.every((id) => known.includes(id)) ? Effect.void : Effect.fail(unavailable(`knows only ${known}`))
    )
  return {
    place,
    spawned,
    /** Answers clients, and says that these brokers are in service. */
    ready: (ids: ReadonlyArray<number>) =>
      knows(ids).pipe(
        Effect.retry({ schedule: Schedule.spaced("50 millis"), while: () => isRunning(child) }),
        Effect.mapError((error) => (isRunning(child) ? error : unavailable("has ended"))),
        Effect.timeoutOrElse({ duration: "2 minutes", orElse: () => Effect.fail(unavailable("is not ready")) })
      ),
    killed: end("SIGKILL"),
    stopped: end("SIGTERM").pipe(
      Effect.timeoutOrElse({ duration: "1 minute", orElse: () => Effect.fail(unavailable("does not stop")) })
    ),
    signal: (signal: NodeJS.Signals) => Effect.sync(() => child?.kill(signal)),
    pid: () => (isRunning(child) ? child.pid : undefined)
  }
}

export type Node = ReturnType<typeof makeNode>
