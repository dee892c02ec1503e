/**
 * Where the embedded PostgreSQL lives and who runs it. Normally the data folder itself. Where the server's account cannot
 * enter it (root in a closed home), a folder of its own under /var/lib or /var/tmp takes the data and a copy of the
 * programs, and the data folder keeps a link to the cluster. Without that link the data folder counts as empty.
 */
import { createHash } from "node:crypto"
import * as fs from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { Effect } from "effect"
import { type Binaries, binaries, copyBinaries } from "./EmbeddedPostgresBinaries.ts"
import { type Account, EmbeddedPostgresError, execute, fileWork, otherServer } from "./EmbeddedPostgresCommand.ts"

export interface Place {
  /** As the caller named it, absolute. */
  readonly dataFolder: string
  /** Holds the cluster, its password, log and locks. The server's account can enter it, but not change its entries. */
  readonly folder: string
  readonly account: Account
  readonly binaries: Binaries
  readonly relocated: boolean
}

export const clusterOf = (folder: string): string => join(folder, "postgres")

const bases = ["/var/lib", "/var/tmp"] as const // /var/tmp is swept of old files on many machines, so it comes second
const isRoot = process.getuid?.() === 0
// initdb and pg_ctl hand their paths to a shell in double quotes.
const unsafe = /["$`\\\n]/

export const ifThere = <A>(found: Promise<A>): Promise<A | undefined> =>
  found.catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined
    throw error
  })

const serverAccount = Effect.gen(function* () {
  const passwd = yield* fileWork("read /etc/passwd", () => fs.readFile("/etc/passwd", "utf8"))
  const entries = passwd.split("\n").map((line) => line.split(":"))
  const entry = entries.find(([name]) => name === "postgres") ?? entries.find(([name]) => name === "nobody")
  if (entry !== undefined) return { uid: Number(entry[2]), gid: Number(entry[3]) }
  return yield* new EmbeddedPostgresError({
    message: `PostgreSQL does not run as root, and there is neither a user postgres nor nobody: run as another user, ${otherServer}`
  })
})

// A cluster keeps its owner, so that a user postgres that is created later does not lock us out.
const accountFor = Effect.fnUntraced(function* (cluster: string) {
  if (!isRoot) return undefined
  const owner = yield* fileWork(`look at ${cluster}`, () => ifThere(fs.stat(cluster)))
  return owner === undefined || owner.uid === 0 ? yield* serverAccount : { uid: owner.uid, gid: owner.gid }
})

// Asked of the kernel as that account: modes alone do not tell (access lists, noexec mounts, missing capabilities).
const usable = (account: Account, { pgCtl }: Binaries, folder: string): Effect.Effect<boolean> => {
  if (unsafe.test(pgCtl + folder)) return Effect.succeed(false)
  if (account === undefined) return Effect.succeed(true)
  const test = execute(account, "/bin/sh", ["-c", '[ -x "$0" ] && [ -x "$1" ]', pgCtl, folder])
  return Effect.map(test, ({ code }) => code === 0)
}

// Under /var/tmp anybody could have made this folder before us, and would then own our server.
const ensureOwn = Effect.fnUntraced(function* (folder: string, account: Account) {
  yield* fileWork(`create ${folder}`, async () => {
    if (!(await ifThere(fs.lstat(folder)))) await fs.mkdir(folder, { mode: 0o700 })
  })
  const found = yield* fileWork(`look at ${folder}`, () => fs.lstat(folder))
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o022) !== 0) {
    return yield* new EmbeddedPostgresError({ message: `${folder} belongs to someone else: remove it, ${otherServer}` })
  }
  if (account === undefined) return
  yield* fileWork(`open ${folder} to the server's account`, async () => {
    await fs.chown(folder, found.uid, account.gid)
    await fs.chmod(folder, 0o710)
  })
})

const relocateTo = Effect.fnUntraced(function* (folder: string, account: Account) {
  yield* ensureOwn(folder, account)
  const copied = yield* copyBinaries(folder)
  if (yield* usable(account, copied, folder)) return { folder, binaries: copied }
  return yield* new EmbeddedPostgresError({ message: `programs cannot be run in ${folder}` })
})

const relocate = (dataFolder: string, account: Account) => {
  const name = `conference-room-reaper-${createHash("sha256").update(dataFolder).digest("hex").slice(0, 12)}`
  return Effect.catch(relocateTo(join(bases[0], name), account), (first) =>
    Effect.mapError(
      relocateTo(join(bases[1], name), account),
      (second) =>
        new EmbeddedPostgresError({
          message: `the PostgreSQL server's account cannot enter ${dataFolder} or reach the programs, and no other place will do (${first.message}; ${second.message}). Use a folder that others may enter (chmod o+x on it and its parents), ${otherServer}`
        })
    )
  )
}

const ensureDataFolder = (named: string) =>
  fileWork(`create ${named}`, async () => {
    const created = await fs.mkdir(named, { recursive: true })
    if (created !== undefined) await fs.chmod(named, isRoot ? 0o711 : 0o700)
    return fs.realpath(named)
  })

/** Finds or prepares the place for a data folder. */
export const locate = Effect.fnUntraced(function* (named: string) {
  const original = yield* binaries
  const dataFolder = yield* ensureDataFolder(resolve(named))
  const cluster = clusterOf(dataFolder)
  const account = yield* accountFor(cluster)
  const found = yield* fileWork(`look at ${cluster}`, () => ifThere(fs.lstat(cluster)))
  if (found?.isSymbolicLink()) {
    // The link leads to the right cluster also after the checkout has moved.
    const folder = yield* fileWork(`follow ${cluster}`, async () => dirname(await fs.readlink(cluster)))
    return { dataFolder, account, relocated: true, ...(yield* relocateTo(folder, account)) } satisfies Place
  }
  if (yield* usable(account, original, dataFolder)) {
    return { dataFolder, account, relocated: false, folder: dataFolder, binaries: original } satisfies Place
  }
  if (found !== undefined) {
    return yield* new EmbeddedPostgresError({
      message: `${dataFolder} holds a database, but the PostgreSQL server's account can no longer enter it: chmod o+x on it and its parents, ${otherServer}`
    })
  }
  return { dataFolder, account, relocated: true, ...(yield* relocate(dataFolder, account)) } satisfies Place
})
