/**
 * The program under test as a process of its own: its log as lines to wait for, its output, its end, its HTTP endpoints.
 * Whatever a test waits for, it waits for at the most half a minute, and the failure shows what the process has said.
 */
import { spawn } from "node:child_process"
import { EventEmitter } from "node:events"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { Effect } from "effect"

export interface LogLine {
  readonly level: string
  readonly message: string
  readonly [field: string]: unknown
}

interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

type Environment = Readonly<Record<string, string>>
type Matches = string | ((line: LogLine) => boolean)

const patience = "30 seconds"
const project = join(import.meta.dirname, "..", "..")
const mainProgram = join(project, "src", "main.ts")

// Nothing of the caller's environment, whose variables could be the program's own.
const base: Environment = {
  PATH: process.env.PATH ?? "",
  // Loading is most of what a short process does.
  NODE_COMPILE_CACHE: join(project, "node_modules", ".cache", "e2e"),
  HTTP_HOST: "127.0.0.1",
  HTTP_PORT: "0",
  REAPER_POLLING_INTERVAL: "1h"
}

const toLine = (text: string): LogLine => {
  try {
    return { level: "", message: "", ...JSON.parse(text) }
  } catch {
    return { level: "", message: text }
  }
}

const launch = (args: ReadonlyArray<string>, environment: Environment, program: string) => {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: tmpdir(),
    env: { ...base, ...environment },
    stdio: ["ignore", "pipe", "pipe"]
  })
  const said = { stdout: "", stderr: "" }
  const lines: Array<LogLine> = []
  const changes = new EventEmitter().setMaxListeners(0)
  let ended: Ended | undefined
  child.stdout.on("data", (chunk) => {
    said.stdout += chunk
  })
  createInterface(child.stderr).on("line", (text) => {
    said.stderr += `${text}\n`
    lines.push(toLine(text))
    changes.emit("change")
  })
  child.on("close", (code, signal) => {
    ended = { code, signal, ...said }
    changes.emit("change")
  })
  return { child, lines, said, changes, ended: () => ended }
}

type Launched = ReturnType<typeof launch>

/** Looks at once and after each change; `give` answers undefined for "not yet". */
const awaitChange = <A>({ changes, said, ended }: Launched, what: string, give: () => A | undefined) =>
  Effect.callback<A>((resume) => {
    const failed = (why: string) => Effect.die(new Error(`${why}: ${what}\n${said.stdout}${said.stderr}`))
    const look = () => {
      const found = give()
      if (found !== undefined) resume(Effect.succeed(found))
      else if (ended() !== undefined) resume(failed("the process has ended before"))
    }
    changes.on("change", look)
    look()
    return Effect.sync(() => changes.off("change", look))
  }).pipe(
    Effect.timeoutOrElse({
      duration: patience,
      orElse: () => Effect.die(new Error(`waited in vain for ${what}\n${said.stdout}${said.stderr}`))
    })
  )

const isMatch = (matches: Matches) => (line: LogLine) =>
  typeof matches === "string" ? line.message.startsWith(matches) : matches(line)

const handle = (launched: Launched) => {
  const { child, lines, said } = launched
  const waitForLog = (matches: Matches, from = 0) =>
    awaitChange(launched, String(matches), () => lines.slice(from).find(isMatch(matches)))
  const count = (matches: Matches) => lines.filter(isMatch(matches)).length
  const ended = awaitChange(launched, "its end", launched.ended)
  const address = Effect.map(waitForLog("Listening on "), ({ message }) => message.slice("Listening on ".length))
  const get = (path: string) =>
    Effect.flatMap(address, (origin) =>
      Effect.promise(async () => {
        const response = await fetch(origin + path)
        return { status: response.status, body: await response.text() }
      })
    )
  return {
    pid: child.pid ?? 0,
    /** The first line that matches, among those said already too; with `from`, among those after the first `from`. */
    waitForLog,
    count,
    /** The log comes through a pipe: what is done may not be said yet. */
    waitForCount: (matches: Matches, atLeast: number) =>
      awaitChange(launched, `${atLeast} lines like ${matches}`, () => count(matches) >= atLeast || undefined),
    said: () => lines.length,
    output: () => said.stdout + said.stderr,
    kill: (signal: NodeJS.Signals) => Effect.sync(() => child.kill(signal)),
    ended,
    get,
    /** The value of one series of `/metrics`, written as there. */
    metric: (series: string) =>
      Effect.map(get("/metrics"), ({ body }) => {
        const line = body.split("\n").find((each) => each.startsWith(`${series} `))
        return line === undefined ? undefined : Number(line.slice(series.length))
      })
  }
}

export type Process = ReturnType<typeof handle>

/** Starts `conference-room-reaper <args>`; killed at the end of the scope if it still runs. */
export const start = (args: ReadonlyArray<string>, environment: Environment, program = mainProgram) =>
  Effect.acquireRelease(
    Effect.sync(() => launch(args, environment, program)),
    (launched) =>
      Effect.gen(function* () {
        launched.child.kill("SIGKILL")
        yield* awaitChange(launched, "its end", launched.ended)
      })
  ).pipe(Effect.map(handle))

/** Runs the program to its end. */
export const execute = (args: ReadonlyArray<string>, environment: Environment) =>
  Effect.scoped(Effect.flatMap(start(args, environment), ({ ended }) => ended))
