/**
 * The server process of one cluster: create, start, recognise, stop. Callers hold the server lock, so only one process at
 * a time does any of it. A cluster appears under its name only when it is complete; fsync stays on.
 */
import { randomBytes } from "node:crypto"
import * as fs from "node:fs/promises"
import { createServer } from "node:net"
import { basename, join } from "node:path"
import { Effect, Schema } from "effect"
import { EmbeddedPostgresError, execute, fileWork, lastLines, otherServer } from "./EmbeddedPostgresCommand.ts"
import { clusterOf, ifThere, type Place } from "./EmbeddedPostgresPlace.ts"

/** Not now, but perhaps in a moment: another try is worth it. */
export class NotYet extends Schema.TaggedError<NotYet>()("NotYet", { message: Schema.String }) {}

export const superuser = "postgres"

const passwordFile = (place: Place) => join(place.folder, "password")
const logFile = (place: Place) => join(place.folder, "postgres.log")
const pidFile = (place: Place) => join(clusterOf(place.folder), "postmaster.pid")

export const password = (place: Place) => fileWork("read its password", () => fs.readFile(passwordFile(place), "utf8"))

/** False also where a relocated cluster is left over from a data folder that was removed. */
export const hasCluster = (place: Place) =>
  fileWork(`look at ${place.dataFolder}`, () => ifThere(fs.stat(clusterOf(place.dataFolder)))).pipe(
    Effect.map((found) => found !== undefined)
  )

const prepare = async (place: Place, partial: string) => {
  // Left by a start that was cut off or, in a relocated place, by a data folder that was removed.
  const partials = (await fs.readdir(place.folder)).filter((name) => name.startsWith("postgres.partial"))
  const left = [...partials.map((name) => join(place.folder, name)), clusterOf(place.folder)]
  for (const path of [...left, passwordFile(place), logFile(place)]) {
    await fs.rm(path, { recursive: true, force: true, maxRetries: 5 })
  }
  await fs.mkdir(partial, { mode: 0o700 })
  await fs.writeFile(passwordFile(place), randomBytes(24).toString("base64url"), { mode: 0o600, flag: "wx" })
  await fs.writeFile(logFile(place), "", { mode: 0o600, flag: "wx" })
  const { account } = place
  if (account === undefined) return
  for (const path of [partial, passwordFile(place), logFile(place)]) await fs.lchown(path, account.uid, account.gid)
}

const keep = async (place: Place, partial: string) => {
  await fs.rename(partial, clusterOf(place.folder))
  const link = clusterOf(place.dataFolder)
  if (place.relocated && !(await ifThere(fs.lstat(link)))) await fs.symlink(clusterOf(place.folder), link)
}

/** Creates the cluster; what an interrupted attempt leaves is never taken for one. */
export const initialise = Effect.fnUntraced(function* (place: Place, durable: boolean) {
  // Named after this process: the initdb of a killed one may still be writing to its own.
  const partial = `${clusterOf(place.folder)}.partial-${process.pid}`
  yield* fileWork(`prepare ${place.folder}`, () => prepare(place, partial))
  const { code, output } = yield* execute(place.account, place.binaries.initdb, [
    `--pgdata=${partial}`,
    `--username=${superuser}`,
    `--pwfile=${passwordFile(place)}`,
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--locale=C",
    ...(durable ? [] : ["--no-sync"])
  ])
  if (code !== 0) {
    return yield* new EmbeddedPostgresError({
      message: `initdb could not create the database in ${place.folder}: ${lastLines(output)}; mend that, ${otherServer}`
    })
  }
  yield* fileWork(`keep ${clusterOf(place.folder)}`, () => keep(place, partial))
})

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

// Elsewhere than on Linux the pid alone has to do. A zombie has an empty command line.
const isPostmaster = async (pid: number, cluster: string): Promise<boolean> => {
  if (!isAlive(pid)) return false
  if (process.platform !== "linux") return true
  const [program = "", ...args] = (await fs.readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0")
  return basename(program) === "postgres" && args.includes(cluster)
}

const readPidFile = async (place: Place): Promise<ReadonlyArray<string>> =>
  ((await ifThere(fs.readFile(pidFile(place), "utf8"))) ?? "").split("\n")

/** The port of the cluster's running server, in whatever state it is; undefined without one. */
export const runningPort = (place: Place): Effect.Effect<number | undefined, EmbeddedPostgresError> =>
  fileWork("read postmaster.pid", async () => {
    const [pid, , , port] = await readPidFile(place)
    const runs = Number(pid) > 0 && (await isPostmaster(Number(pid), clusterOf(place.folder)))
    return runs ? Number(port) : undefined
  })

// After a crash the pid may have gone to another process, and the server would refuse to start for ever. Only the pid is
// struck out, not the file: by the rest of it PostgreSQL still sees whether a server that we did not recognise lives.
const strikeForeignPid = async (place: Place) => {
  const [pid, ...rest] = await readPidFile(place)
  if (!(Number(pid) > 0) || !isAlive(Number(pid))) return
  const nobody = 2 ** 31 - 1
  const file = await fs.open(pidFile(place), fs.constants.O_WRONLY | fs.constants.O_TRUNC | fs.constants.O_NOFOLLOW)
  await file.writeFile([nobody, ...rest].join("\n")).finally(() => file.close())
}

const freePort = Effect.callback<number, EmbeddedPostgresError>((resume) => {
  const probe = createServer()
  const failed = (error: Error) =>
    resume(Effect.fail(new EmbeddedPostgresError({ message: `no free port: ${error.message}` })))
  probe.once("error", failed)
  probe.listen(0, "127.0.0.1", () => {
    const address = probe.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    probe.close(() => resume(Effect.succeed(port)))
  })
})

const settings = (port: number, durable: boolean): string =>
  [
    `port=${port}`,
    "listen_addresses=127.0.0.1",
    // A socket's path may be 107 bytes long, which a deep checkout exceeds.
    "unix_socket_directories=",
    "max_connections=100",
    "shared_buffers=32MB",
    "timezone=UTC",
    "log_timezone=UTC",
    "log_checkpoints=off",
    ...(durable ? [] : ["fsync=off", "full_page_writes=off"])
  ]
    .map((setting) => `-c ${setting}`)
    .join(" ")

// The backends of a killed postmaster take a moment to go; a port can be taken between the probe and the start.
const passing = /pre-existing shared memory block|Address already in use|in use by another|could not create any TCP/

/** Starts the server, waits through crash recovery, and answers its port. */
export const start = Effect.fnUntraced(function* (place: Place, durable: boolean) {
  yield* fileWork("clear postmaster.pid", () => strikeForeignPid(place))
  const port = yield* freePort
  const logged = yield* fileWork("read its log", async () => (await ifThere(fs.stat(logFile(place))))?.size ?? 0)
  const args = [
    "start",
    "-w",
    "-t",
    "60",
    "-D",
    clusterOf(place.folder),
    "-l",
    logFile(place),
    "-o",
    settings(port, durable)
  ]
  // Cut off in the middle, it would leave a server behind that the caller's clean-up does not see yet.
  const { code, output } = yield* Effect.uninterruptible(execute(place.account, place.binaries.pgCtl, args))
  if (code === 0) return port
  const log = yield* fileWork("read its log", () => fs.readFile(logFile(place)))
  // pg_ctl itself only says that the server did not start.
  const why = lastLines(log.subarray(logged).toString("utf8") || output)
  return yield* passing.test(why)
    ? new NotYet({ message: why })
    : new EmbeddedPostgresError({
        message: `the embedded PostgreSQL in ${place.folder} does not start: ${why}; see ${logFile(place)}, ${otherServer}`
      })
})

/** Stops the server if it runs, at the latest after 40 seconds. */
export const stop = Effect.fnUntraced(function* (place: Place) {
  const attempt = (mode: string, seconds: number) =>
    execute(place.account, place.binaries.pgCtl, [
      "stop",
      "-w",
      "-m",
      mode,
      "-t",
      `${seconds}`,
      "-D",
      clusterOf(place.folder)
    ])
  // Never without this look: the pid in the file may belong to another program of this user by now.
  if ((yield* runningPort(place)) === undefined) return
  const { code, output } = yield* attempt("fast", 30)
  if (code === 0) return
  yield* Effect.logWarning(`the embedded PostgreSQL does not stop: ${lastLines(output)}`)
  yield* attempt("immediate", 10)
})
