/**
 * What the machine must have for the Kafka suites. A suite that lacks something is skipped under its own name, with what is
 * missing in it, so that a report shows what was not tested.
 */
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"

/** Brokers given from outside instead of an own one, where a test can live with that. */
export const givenBrokers: ReadonlyArray<string> = (process.env.KAFKA_BROKERS ?? "")
  .split(",")
  .map((broker) => broker.trim())
  .filter((broker) => broker !== "")

export type Need =
  /** `anyBrokers`: given ones, or a node of our own. */
  | "brokers"
  /** `cluster`: nodes of our own, to be stopped and killed. */
  | "cluster"
  /** `readTopic`. */
  | "kcat"
  /** `mockCluster`. */
  | "mock"

const has = (program: string) => spawnSync("sh", ["-c", 'command -v "$0"', program]).status === 0

/** 0: there is none, or it does not run. */
const javaVersion = () => Number(/version "(\d+)/.exec(String(spawnSync("java", ["-version"]).stderr))?.[1] ?? 0)

const forNodes = () => [
  ...(javaVersion() >= 17 ? [] : ["java (17 or later)"]),
  ...(has("mvn") ? [] : ["mvn (Maven 3.8 or later)"])
]

const missing: Readonly<Record<Need, () => ReadonlyArray<string>>> = {
  brokers: () => (givenBrokers.length > 0 ? [] : forNodes()),
  cluster: forNodes,
  kcat: () => (has("kcat") ? [] : ["kcat"]),
  mock: () => [
    ...(has("gcc") ? [] : ["gcc"]),
    ...(existsSync("/usr/include/librdkafka/rdkafka_mock.h") ? [] : ["librdkafka-dev"])
  ]
}

/** What is missing for these needs, by name; for `describe.skipIf(missing.length > 0)`. */
export const requirements = (...needs: ReadonlyArray<Need>): ReadonlyArray<string> => [
  ...new Set((needs.length > 0 ? needs : (["cluster", "kcat", "mock"] as const)).flatMap((need) => missing[need]()))
]

/** The title of a suite, with what it is skipped for. */
export const titled = (title: string, lacking: ReadonlyArray<string>): string =>
  lacking.length === 0 ? title : `${title} [skipped, needs ${lacking.join(", ")}]`
