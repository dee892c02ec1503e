/**
 * One PostgreSQL server for the whole test run: the product's own embedded server in a folder that is removed afterwards.
 * Without fsync, so never a model for a server that is to keep data.
 */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Effect, Exit, Redacted, Scope } from "effect"
import type { TestProject } from "vitest/node"
import { type Server, serve } from "../../src/layers/EmbeddedPostgres.ts"

declare module "vitest" {
  interface ProvidedContext {
    /** The test server's own database; `freshDatabase` gives one to write to. */
    readonly pgUrl: string
    /** A pooler in transaction mode before that server, where the layers under test are to go through one. */
    readonly pgPoolerUrl: string | undefined
  }
}

export type TestServer = Pick<Server, "url" | "dataDirectory" | "relocated">

/** Starts the server in a folder of its own, provides `pgUrl`, and closes `scope` even when the run is cut short. */
export const provideServer = async <E>(
  project: TestProject,
  scope: Scope.Closeable,
  start: (folder: string) => Effect.Effect<TestServer, E, Scope.Scope>
) => {
  const folder = mkdtempSync(join(tmpdir(), "conference-room-reaper-test-"))
  const removed = [folder]
  let pidFile: string | undefined
  // On a signal Vitest leaves at once, without its tear-down, and the server is in no process group of ours.
  process.once("exit", () => {
    if (pidFile !== undefined && existsSync(pidFile)) {
      process.kill(Number.parseInt(readFileSync(pidFile, "utf8"), 10), "SIGQUIT")
    }
    for (const path of removed) rmSync(path, { recursive: true, force: true, maxRetries: 5 })
  })
  // Root's server runs under another account, which has to pass through.
  chmodSync(folder, 0o711)
  const server = await Effect.runPromise(Scope.provide(start(folder), scope))
  pidFile = join(server.dataDirectory, "postmaster.pid")
  if (server.relocated) removed.push(dirname(server.dataDirectory))
  project.provide("pgUrl", Redacted.value(server.url))
}

export default async function (project: TestProject) {
  const scope = Scope.makeUnsafe()
  await provideServer(project, scope, (folder) =>
    serve(folder, { exclusive: true, durable: false, database: "postgres" })
  )
  return () => Effect.runPromise(Scope.close(scope, Exit.void))
}
