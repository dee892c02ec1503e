/**
 * A version of Kafka as a folder of jars, fetched by Maven once and kept under node_modules/.cache. Beside them lies what
 * `StorageTool format` writes: formatting costs the start of a JVM, and all nodes of a version begin alike.
 */
import { existsSync } from "node:fs"
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { output } from "./Command.ts"
import { KafkaUnavailable } from "./KafkaUnavailable.ts"

/** The newest of the current line, and the last line that also ran with ZooKeeper. */
export const kafka4 = "4.3.1"
export const kafka3 = "3.9.2"

export interface Distribution {
  readonly version: string
  readonly classPath: string
  /** The metadata that a new node begins with. */
  readonly bootstrapCheckpoint: string
}

/** For many short-lived JVMs on few cores: no second compiler, no collector threads, a small heap. */
export const javaOptions = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]

export const cache = join(import.meta.dirname, "..", "..", "..", "node_modules", ".cache")

const at = (folder: string, version: string): Distribution => ({
  version,
  classPath: join(folder, "lib", "*"),
  bootstrapCheckpoint: join(folder, "formatted", "bootstrap.checkpoint")
})

const disk = <A>(work: () => Promise<A>) =>
  Effect.tryPromise({ try: work, catch: (cause) => new KafkaUnavailable({ message: String(cause) }) })

const formatProperties = (folder: string) =>
  [
    "process.roles=broker,controller",
    "node.id=1",
    "controller.quorum.voters=1@127.0.0.1:1",
    "listeners=BROKER://127.0.0.1:2,CONTROLLER://127.0.0.1:1",
    "listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name=BROKER",
    "controller.listener.names=CONTROLLER",
    `log.dirs=${join(folder, "formatted")}`
  ].join("\n")

const fill = Effect.fnUntraced(function* (folder: string, version: string) {
  const pom = join(import.meta.dirname, "pom.xml")
  const into = [`-Dkafka.version=${version}`, "-DincludeScope=runtime", `-DoutputDirectory=${join(folder, "lib")}`]
  yield* output("mvn", ["-B", "-q", "-f", pom, "dependency:copy-dependencies", ...into], 600_000)
  const properties = join(folder, "format.properties")
  yield* disk(() => writeFile(properties, formatProperties(folder)))
  const tool = ["-cp", at(folder, version).classPath, "kafka.tools.StorageTool"]
  const clusterId = "AAAAAAAAAAAAAAAAAAAAAA"
  yield* output("java", [...javaOptions, ...tool, "format", "--cluster-id", clusterId, "--config", properties])
})

/** The version from the cache, or into it. Several test runs may do so at once: the first one to end wins. */
export const distribution = Effect.fnUntraced(function* (version: string) {
  const folder = join(cache, `kafka-${version}`)
  if (existsSync(folder)) return at(folder, version)
  yield* disk(() => mkdir(cache, { recursive: true }))
  yield* Effect.acquireUseRelease(
    disk(() => mkdtemp(`${folder}-`)),
    (unfinished) =>
      Effect.andThen(
        fill(unfinished, version),
        disk(() => rename(unfinished, folder)).pipe(Effect.catch((error) => (existsSync(folder) ? Effect.void : error)))
      ),
    (unfinished) => Effect.promise(() => rm(unfinished, { recursive: true, force: true }))
  )
  return at(folder, version)
})
