/** The embedded server with real processes and real kills: who may use it, who stops it, what survives. */
import { spawn } from "node:child_process"
import { mkdirSync, readFileSync, realpathSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it, vi } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as EmbeddedPostgres from "../../src/layers/EmbeddedPostgres.ts"
import {
  answers,
  attach,
  dataFolder,
  hold,
  holdServer,
  keepRow,
  keptRows,
  onServer,
  own,
  postmasterPid
} from "../support/EmbeddedPostgresFixture.ts"

// Each creates a database and starts processes.
vi.setConfig({ testTimeout: 60_000 })

const mode = (path: string) => statSync(path).mode & 0o777

it.live("creates a durable server on the loopback address at the first start", () =>
  Effect.gen(function* () {
    const folder = yield* dataFolder
    const server = yield* EmbeddedPostgres.own(folder)
    expect(server.takenOver).toBe(false)
    expect(realpathSync(join(folder, "postgres"))).toBe(server.dataDirectory)
    const names = [
      "fsync",
      "listen_addresses",
      "unix_socket_directories",
      "server_encoding",
      "TimeZone",
      "max_connections"
    ]
    const settings = yield* onServer(
      server,
      (sql) =>
        sql<{ name: string; setting: string }>`select name, setting from pg_settings where name in ${sql.in(names)}`
    )
    expect(Object.fromEntries(settings.map(({ name, setting }) => [name, setting]))).toEqual({
      fsync: "on",
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      server_encoding: "UTF8",
      TimeZone: "UTC",
      max_connections: "100"
    })
    expect(new URL(Redacted.value(server.url)).pathname).toBe("/messenger")
    expect([mode(join(server.dataDirectory, "..", "password")), mode(server.dataDirectory)]).toEqual([0o600, 0o700])
  })
)

it.live("keeps the rows for the second start, and the server ends with its owner", () =>
  Effect.gen(function* () {
    const folder = yield* dataFolder
    const first = yield* Effect.scoped(Effect.tap(own(folder), keepRow))
    expect(yield* answers(first)).toBe(false)
    const second = yield* own(folder)
    expect(second.takenOver).toBe(false)
    expect(yield* keptRows(second)).toEqual([7])
  })
)

it.live("starts anew where the first start was cut off", () =>
  Effect.gen(function* () {
    const folder = yield* dataFolder
    mkdirSync(join(folder, "postgres.partial-1"), { recursive: true })
    writeFileSync(join(folder, "postgres.partial-1", "PG_VERSION"), "18\n")
    writeFileSync(join(folder, "password"), "of the start that was cut off")
    expect(yield* answers(yield* own(folder))).toBe(true)
  })
)

it.live("takes over the server that a killed owner has left", () =>
  Effect.gen(function* () {
    const folder = yield* dataFolder
    const { server, signal } = yield* holdServer("own", folder)
    yield* keepRow(server)
    yield* signal("SIGKILL")
    const next = yield* Effect.scoped(Effect.tap(own(folder), keptRows))
    expect(next).toMatchObject({ takenOver: true, port: server.port })
    expect(yield* answers(next)).toBe(false)
  })
)

it.live("recovers when owner and server were killed, also when their pids have gone to other processes", () =>
  Effect.gen(function* () {
    const folder = yield* dataFolder
    const { server, signal } = yield* holdServer("own", folder)
    yield* keepRow(server)
    yield* signal("SIGKILL")
    const pidFile = join(server.dataDirectory, "postmaster.pid")
    const [pid = "", ...rest] = readFileSync(pidFile, "utf8").split("\n")
    process.kill(Number(pid), "SIGKILL")
    const { uid, gid } = statSync(server.dataDirectory)
    const other = yield* Effect.acquireRelease(
      Effect.sync(() => spawn("sleep", ["600"], { uid, gid })),
      (sleeper) => Effect.sync(() => sleeper.kill("SIGKILL"))
    )
    writeFileSync(pidFile, [other.pid, ...rest].join("\n"))
    const next = yield* Effect.scoped(
      Effect.tap(own(folder), (found) => Effect.map(keptRows(found), (rows) => expect(rows).toEqual([7])))
    )
    expect(next.takenOver).toBe(false)
    expect(other.exitCode ?? other.signalCode).toBe(null)
  })
)

it.live("refuses a second owner, naming the folder and the first one's process", () =>
  Effect.gen(function* () {
    const folder = yield* dataFolder
    const { server, pid } = yield* holdServer("own", folder)
    const refused = yield* Effect.flip(Effect.scoped(own(folder)))
    expect(refused.message).toContain(`${folder} is in use by another worker, process ${pid}`)
    expect(yield* answers(server)).toBe(true)
  })
)

it.live("lets exactly one of several owners in that start at the same moment", () =>
  Effect.gen(function* () {
    const folder = yield* dataFolder
    const all = yield* Effect.forEach([1, 2, 3], () => hold("own", folder), { concurrency: "unbounded" })
    expect(all.filter(({ answer }) => "url" in answer)).toHaveLength(1)
  })
)

it.live("attaches to the owner's server and leaves it running", () =>
  Effect.gen(function* () {
    const folder = yield* dataFolder
    const { server } = yield* holdServer("own", folder)
    const attached = yield* Effect.scoped(attach(folder))
    expect(attached).toMatchObject({ takenOver: true, port: server.port })
    expect(yield* answers(server)).toBe(true)
  })
)

it.live("starts a server for an attaching command alone and stops it at the end", () =>
  Effect.gen(function* () {
    const folder = yield* dataFolder
    const attached = yield* Effect.scoped(Effect.tap(attach(folder), keepRow))
    expect(attached.takenOver).toBe(false)
    expect(yield* answers(attached)).toBe(false)
  })
)

it.live("leaves the server to the last user, whoever has started it", () =>
  Effect.gen(function* () {
    const folder = yield* dataFolder
    const command = yield* holdServer("attach", folder)
    const worker = yield* holdServer("own", folder)
    expect(worker.server).toMatchObject({ takenOver: true, port: command.server.port })
    yield* command.signal("SIGTERM")
    expect(yield* answers(worker.server)).toBe(true)
    const later = yield* holdServer("attach", folder)
    yield* worker.signal("SIGINT")
    expect(yield* answers(later.server)).toBe(true)
    yield* later.signal("SIGTERM")
    expect(yield* answers(later.server)).toBe(false)
  })
)

it.live("starts no second server on data that a process uses whose server has gone", () =>
  Effect.gen(function* () {
    const folder = yield* dataFolder
    const { server } = yield* holdServer("own", folder)
    process.kill(postmasterPid(server.dataDirectory) ?? 0, "SIGKILL")
    const refused = yield* Effect.flip(Effect.scoped(attach(folder)))
    expect(refused.message).toContain(`another process uses ${folder}, but its PostgreSQL server is gone`)
  })
)

it.live.skipIf(process.platform !== "linux")(
  "runs the server in a session of its own, out of reach of Ctrl-C (needs Linux)",
  () =>
    Effect.gen(function* () {
      const server = yield* own(yield* dataFolder)
      const pid = postmasterPid(server.dataDirectory)
      const [, , , session] = readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /, "")
        .split(" ")
      expect(Number(session)).toBe(pid)
    })
)
