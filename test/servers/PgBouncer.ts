/**
 * PgBouncer in transaction mode before a PostgreSQL server of this machine, on a free port, until the scope ends. It logs
 * in as the account of the server's url, for its clients and for itself.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { connect, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Data, Effect, Schedule } from "effect"

const isRoot = process.getuid?.() === 0

class PgBouncerUnavailable extends Data.TaggedError("PgBouncerUnavailable")<{ readonly message: string }> {}

const freePort = async () => {
  const probe = createServer().listen(0, "127.0.0.1")
  await once(probe, "listening")
  const address = probe.address()
  probe.close()
  return typeof address === "object" && address !== null ? address.port : 0
}

const settings = (folder: string, server: URL, port: number, poolSize: number) => `[databases]
* = host=${server.hostname} port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${join(folder, "users.txt")}
pool_mode = transaction
default_pool_size = ${poolSize}
`

const configure = (server: URL, port: number, poolSize: number) => {
  const folder = mkdtempSync(join(tmpdir(), "conference-room-reaper-pgbouncer-"))
  // PgBouncer does not run as root, so root's runs under another account, which has to read these.
  chmodSync(folder, 0o755)
  writeFileSync(join(folder, "users.txt"), `"${server.username}" "${server.password}"\n`)
  writeFileSync(join(folder, "pgbouncer.ini"), settings(folder, server, port, poolSize))
  return folder
}

const launch = (folder: string) => {
  const program = spawn("pgbouncer", [...(isRoot ? ["-u", "nobody"] : []), join(folder, "pgbouncer.ini")], {
    // Debian keeps it where only root's PATH leads.
    env: { PATH: `${process.env.PATH}:/usr/sbin` },
    stdio: ["ignore", "ignore", "pipe"]
  })
  let log = ""
  program.stderr.on("data", (chunk) => {
    log += chunk
  })
  program.on("error", (error) => {
    log += error.message
  })
  return { program, log: () => log }
}

const hasEnded = (program: ChildProcess) =>
  program.pid === undefined || program.exitCode !== null || program.signalCode !== null

const answers = (port: number) =>
  Effect.promise(
    () =>
      new Promise<boolean>((resolve) => {
        const socket = connect(port, "127.0.0.1")
        socket.once("connect", () => resolve(true)).once("error", () => resolve(false))
        socket.once("connect", () => socket.destroy())
      })
  )

const end = (program: ChildProcess) =>
  Effect.promise(async () => {
    if (hasEnded(program)) return
    const ended = once(program, "exit")
    program.kill("SIGKILL")
    await ended
  })

/** PgBouncer before the server of `serverUrl`, with at most `poolSize` connections to each database. */
export const before = Effect.fnUntraced(function* (serverUrl: string, poolSize: number) {
  const server = new URL(serverUrl)
  const port = yield* Effect.promise(freePort)
  const folder = configure(server, port, poolSize)
  let running: ReturnType<typeof launch> | undefined
  const stop = Effect.suspend(() => (running === undefined ? Effect.void : end(running.program)))
  const start = Effect.gen(function* () {
    const launched = launch(folder)
    running = launched
    const isUp = yield* answers(port).pipe(
      Effect.repeat({
        until: (up) => up || hasEnded(launched.program),
        schedule: Schedule.spaced("20 millis")
      })
    )
    if (!isUp) return yield* new PgBouncerUnavailable({ message: launched.log().trim() })
  })
  yield* Effect.addFinalizer(() =>
    Effect.andThen(
      stop,
      Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
    )
  )
  yield* start
  server.port = String(port)
  return {
    url: server.href,
    /** How many clients have come since the last start. */
    logins: () => running?.log().match(/login attempt/g)?.length ?? 0,
    /** Ends it at once, with all its connections; its clients and servers see them close. */
    stop,
    start
  }
})
