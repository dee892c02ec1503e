/**
 * One PostgreSQL server for the whole test run: the product's own embedded server in a folder that is removed afterwards.
 * Without fsync, so never a model for a server that is to keep data.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises"
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
  const folder = await mkdtemp(join(tmpdir(), "conference-room-reaper-test-"))
  // Root's server runs under another account, which has to pass through.
  await chmod(folder, 0o711)
  const scope = Scope.makeUnsafe()
  const use = { exclusive: true, durable: false, database: "postgres" }
  const server = await Effect.runPromise(Scope.provide(serve(folder, use), scope))
  project.provide("pgUrl", Redacted.value(server.url))
  return async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    if (server.relocated) await rm(dirname(server.dataDirectory), { recursive: true })
    await rm(folder, { recursive: true })
  }
}
