/** A PostgreSQL server of the test's own, which may be restarted under a worker. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { serve } from "../../src/layers/EmbeddedPostgres.ts"
import { execute } from "../../src/layers/EmbeddedPostgresCommand.ts"
import { clusterOf, locate } from "../../src/layers/EmbeddedPostgresPlace.ts"
import { migrate } from "../../src/layers/Migrations.ts"
import { clientLayer } from "../support/postgres.ts"
import * as Rooms from "./Rooms.ts"

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "conference-room-reaper-e2e-"))
    // Root's server runs under another account, which has to pass through.
    chmodSync(folder, 0o711)
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
)

/** Rooms on a migrated database of a server of their own. */
export const rooms = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const server = yield* serve(folder, { exclusive: true, durable: false, database: "messenger" })
  if (server.relocated) {
    const relocated = dirname(server.dataDirectory)
    yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(relocated, { recursive: true, force: true })))
  }
  const place = yield* locate(folder)
  yield* Effect.provide(migrate, clientLayer(server.url))
  const restart = Effect.fnUntraced(function* (mode: "fast" | "immediate") {
    const cluster = clusterOf(place.folder)
    const log = join(place.folder, "postgres.log")
    const args = ["restart", "-w", "-t", "30", "-m", mode, "-D", cluster, "-l", log]
    const { code, output } = yield* execute(place.account, place.binaries.pgCtl, args)
    if (code !== 0) return yield* Effect.die(new Error(output))
  })
  return { ...(yield* Rooms.on(server.url)), restart }
})
