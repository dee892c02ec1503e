/**
 * librdkafka's mock cluster, which starts at once and fails on command. It keeps records in memory and checks neither
 * sequences nor sizes nor replicas; its controller is no broker, which `KafkaProxy` mends.
 */
import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { mkdir, rename } from "node:fs/promises"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { Effect, type Scope } from "effect"
import { output } from "./Command.ts"
import { cache } from "./Distribution.ts"
import { KafkaUnavailable } from "./KafkaUnavailable.ts"

/** A command is done when its effect succeeds. Brokers go by their ids 1..n. */
export interface MockCluster {
  readonly brokers: ReadonlyArray<string>
  readonly createTopic: (
    topic: string,
    partitions: number,
    replication?: number
  ) => Effect.Effect<void, KafkaUnavailable>
  /** Answers the next requests of this api with these codes, in turn; on whichever broker they come. */
  readonly pushErrors: (apiKey: number, codes: ReadonlyArray<number>) => Effect.Effect<void, KafkaUnavailable>
  readonly clearErrors: (apiKey: number) => Effect.Effect<void, KafkaUnavailable>
  /** 0: none. Clients see it when they next ask for metadata. */
  readonly topicError: (topic: string, code: number) => Effect.Effect<void, KafkaUnavailable>
  readonly brokerDown: (id: number) => Effect.Effect<void, KafkaUnavailable>
  readonly brokerUp: (id: number) => Effect.Effect<void, KafkaUnavailable>
  readonly setLeader: (topic: string, partition: number, id: number) => Effect.Effect<void, KafkaUnavailable>
  readonly setRtt: (id: number, milliseconds: number) => Effect.Effect<void, KafkaUnavailable>
  readonly setVersions: (apiKey: number, min: number, max: number) => Effect.Effect<void, KafkaUnavailable>
}

const source = join(import.meta.dirname, "mockd.c")

const compiled = Effect.gen(function* () {
  const digest = createHash("sha256").update(readFileSync(source)).digest("hex").slice(0, 16)
  const program = join(cache, `mockd-${digest}`)
  if (existsSync(program)) return program
  yield* Effect.promise(() => mkdir(cache, { recursive: true }))
  const unfinished = `${program}.${process.pid}`
  yield* output("gcc", ["-O1", "-Wall", "-o", unfinished, source, "-lrdkafka"])
  yield* Effect.promise(() => rename(unfinished, program))
  return program
})

const launch = (program: string, brokers: number) => {
  const child = spawn(program, [String(brokers)], { stdio: ["pipe", "pipe", "inherit"] })
  const waiting: Array<(line: string) => void> = []
  createInterface(child.stdout).on("line", (line) => waiting.shift()?.(line))
  child.on("close", (code) => {
    for (const answer of waiting.splice(0)) answer(`the mock cluster has ended with ${code}`)
  })
  child.stdin.on("error", () => {})
  const nextLine = new Promise<string>((resolve) => waiting.push(resolve))
  const ask = (command: string) =>
    new Promise<string>((resolve) => {
      waiting.push(resolve)
      child.stdin.write(`${command}\n`)
    })
  return { child, nextLine, ask }
}

const commands = (ask: (command: string) => Promise<string>): Omit<MockCluster, "brokers"> => {
  const tell = (...words: ReadonlyArray<string | number>) =>
    Effect.promise(() => ask(words.join(" "))).pipe(
      Effect.filterOrFail(
        (answer) => answer === "ok",
        (answer) => new KafkaUnavailable({ message: `${words.join(" ")}: ${answer}` })
      ),
      Effect.asVoid
    )
  return {
    createTopic: (topic, partitions, replication = 1) => tell("topic", topic, partitions, replication),
    pushErrors: (apiKey, codes) => tell("errors", apiKey, ...codes),
    clearErrors: (apiKey) => tell("clear", apiKey),
    topicError: (topic, code) => tell("topic-error", topic, code),
    brokerDown: (id) => tell("down", id),
    brokerUp: (id) => tell("up", id),
    setLeader: (topic, partition, id) => tell("leader", topic, partition, id),
    setRtt: (id, milliseconds) => tell("rtt", id, milliseconds),
    setVersions: (apiKey, min, max) => tell("versions", apiKey, min, max)
  }
}

export const mockCluster = Effect.fnUntraced(function* ({
  brokers = 1
}: {
  readonly brokers?: number
} = {}): Effect.fn.Return<MockCluster, KafkaUnavailable, Scope.Scope> {
  const program = yield* compiled
  const { nextLine, ask } = yield* Effect.acquireRelease(
    Effect.sync(() => launch(program, brokers)),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )
  const bootstraps = yield* Effect.promise(() => nextLine)
  return { brokers: bootstraps.split(","), ...commands(ask) }
})
