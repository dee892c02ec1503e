/** The embedded server where accounts and closed folders stand in its way, and what it says when it cannot help. */
import { createHash } from "node:crypto"
import { chownSync, lstatSync, mkdirSync, realpathSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, it, vi } from "@effect/vitest"
import { Effect } from "effect"
import {
  answers,
  checkout,
  hold,
  holdServer,
  isRoot,
  keepRow,
  keptRows,
  leanCheckout,
  own,
  temporaryFolder
} from "../support/EmbeddedPostgresFixture.ts"

// Each creates a database and starts processes.
vi.setConfig({ testTimeout: 60_000 })

const asRoot = it.live.skipIf(!isRoot)
const nobody = 65534

asRoot("serves root in a closed folder from a place of its own, and keeps the rows there (needs root)", () =>
  Effect.gen(function* () {
    const root = yield* checkout(yield* temporaryFolder(0o700))
    const folder = join(root, ".data")
    const first = yield* holdServer("own", folder, root)
    expect(first.server.relocated).toBe(true)
    expect(realpathSync(join(folder, "postgres"))).toBe(first.server.dataDirectory)
    expect(lstatSync(join(first.server.dataDirectory, "..")).mode & 0o777).toBe(0o710)
    yield* keepRow(first.server)
    yield* first.signal("SIGTERM")
    const second = yield* holdServer("own", folder, root)
    expect(yield* keptRows(second.server)).toEqual([7])
    const refused = yield* hold("own", folder, root)
    expect(refused.answer).toMatchObject({ message: expect.stringContaining(`process ${second.pid}`) })
  })
)

asRoot("starts empty when the data folder of a relocated server was removed (needs root)", () =>
  Effect.gen(function* () {
    const root = yield* checkout(yield* temporaryFolder(0o700))
    const folder = join(root, ".data")
    const first = yield* holdServer("own", folder, root)
    yield* keepRow(first.server)
    yield* first.signal("SIGKILL")
    rmSync(folder, { recursive: true })
    const second = yield* holdServer("own", folder, root)
    expect(second.server.takenOver).toBe(false)
    expect((yield* Effect.flip(keptRows(second.server)))._tag).toBe("SqlError")
  })
)

asRoot("refuses a place that somebody else has made before it (needs root)", () =>
  Effect.gen(function* () {
    const root = yield* checkout(yield* temporaryFolder(0o700))
    const folder = join(root, ".data")
    const hash = createHash("sha256").update(folder).digest("hex").slice(0, 12)
    const squatted = ["/var/lib", "/var/tmp"].map((base) => join(base, `conference-room-reaper-${hash}`))
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        for (const place of squatted) rmSync(place, { recursive: true })
      })
    )
    for (const place of squatted) {
      mkdirSync(place)
      chownSync(place, nobody, nobody)
    }
    const { answer } = yield* hold("own", folder, root)
    for (const place of squatted) {
      expect(answer).toMatchObject({ message: expect.stringContaining(`${place} belongs to someone else`) })
    }
  })
)

asRoot("serves a plain user in a home that is closed to others (needs root to become that user)", () =>
  Effect.gen(function* () {
    const home = yield* checkout(yield* temporaryFolder(0o700), nobody)
    const { server, signal } = yield* holdServer("own", join(home, ".data"), home, nobody)
    expect(server).toMatchObject({ relocated: false, takenOver: false })
    expect(yield* answers(server)).toBe(true)
    yield* signal("SIGTERM")
    expect(yield* answers(server)).toBe(false)
  })
)

asRoot("says why a user without an entry in /etc/passwd gets no database (needs root to become that user)", () =>
  Effect.gen(function* () {
    const stranger = 54_321
    const home = yield* checkout(yield* temporaryFolder(0o700), stranger)
    const { answer } = yield* hold("own", join(home, ".data"), home, stranger)
    expect(answer).toMatchObject({ message: expect.stringMatching(/initdb .*user does not exist.*DATABASE_URL/) })
  })
)

it.live("serves from a folder whose name a shell would misread", () =>
  Effect.gen(function* () {
    const folder = join(yield* temporaryFolder(0o711), 'комната $(x) "1"', ".data")
    const server = yield* Effect.scoped(
      Effect.tap(own(folder), (found) => Effect.map(answers(found), (answering) => expect(answering).toBe(true)))
    )
    rmSync(dirname(server.dataDirectory), { recursive: true })
    expect(server.relocated).toBe(true)
  })
)

it.live("says what to do when the optional package is not installed", () =>
  Effect.gen(function* () {
    const root = yield* leanCheckout(yield* temporaryFolder(0o700))
    const { answer } = yield* hold("own", join(root, ".data"), root)
    expect(answer).toMatchObject({ message: expect.stringMatching(/set DATABASE_URL.*npm ci.*--omit=optional/) })
  })
)
