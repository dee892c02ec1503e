/**
 * One PostgreSQL server for the whole test run: the product's own embedded server in a folder that is removed afterwards.
 * Without fsync, so never a model for a server that is to keep data.
 */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Effect, Exit, Redacted, Scope } from "effect"
import type { TestProject } from "vitest/node"
import { serve } from "../../src/layers/EmbeddedPostgres.ts"

declare module "vitest" {
  interface ProvidedContext {
    /** The test server's own database; `freshDatabase` gives one to write to. */
    readonly pgUrl: string
  }
}

export default async function (project: TestProject) {
  const folder = mkdtempSync(join(tmpdir(), "conference-room-reaper-test-"))
  // Root's server runs under another account, which has to pass through.
  chmodSync(folder, 0o711)
  const scope = Scope.makeUnsafe()
  const use = { exclusive: true, durable: false, database: "postgres" }
  const server = await Effect.runPromise(Scope.provide(serve(folder, use), scope))
  project.provide("pgUrl", Redacted.value(server.url))
  const pidFile = join(server.dataDirectory, "postmaster.pid")
  const removed = [folder, ...(server.relocated ? [dirname(server.dataDirectory)] : [])]
  // On a signal Vitest leaves at once, without its tear-down, and the server is in no process group of ours.
  process.once("exit", () => {
    if (existsSync(pidFile)) process.kill(Number.parseInt(readFileSync(pidFile, "utf8"), 10), "SIGQUIT")
    for (const path of removed) rmSync(path, { recursive: true, force: true, maxRetries: 5 })
  })
  return () => Effect.runPromise(Scope.close(scope, Exit.void))
}
