/**
 * The server of each project of `vitest.servers.config.ts`, by the project's name. Where one cannot be had, the project's
 * tests are reported as skipped, one of them with the reason as its name.
 */
import { Effect, Exit, Scope } from "effect"
import type { TestProject } from "vitest/node"
import { serve } from "../../src/layers/EmbeddedPostgres.ts"
import { provideServer, type TestServer } from "../support/globalSetup.ts"
import * as OtherPostgres from "./OtherPostgres.ts"
import * as PgBouncer from "./PgBouncer.ts"

export interface ServerUnderTest {
  readonly name: string
  /** Major version of PostgreSQL. */
  readonly version: number
  readonly pooled: boolean
  /** Why it cannot be had. */
  readonly missing: string | undefined
}

declare module "vitest" {
  interface ProvidedContext {
    readonly serverUnderTest: ServerUnderTest
  }
}

interface Kind {
  readonly version: number
  readonly pooled: boolean
  readonly start: (folder: string) => Effect.Effect<TestServer, { readonly message: string }, Scope.Scope>
}

const embedded = (folder: string) => serve(folder, { exclusive: true, durable: false, database: "postgres" })

const kinds: Readonly<Record<string, Kind>> = {
  "PostgreSQL 14": { version: 14, pooled: false, start: OtherPostgres.fromNpm("14.23.0-beta.17") },
  "PostgreSQL 15 of Debian": { version: 15, pooled: false, start: OtherPostgres.fromDebian(15) },
  "PostgreSQL 18": { version: 18, pooled: false, start: embedded },
  PgBouncer: { version: 18, pooled: true, start: embedded }
}

// As many as the layers' pool and some run locks need at a time, and fewer than there are clients.
const poolSize = 12

export default async function (project: TestProject) {
  const kind = kinds[project.name]
  if (kind === undefined) throw new Error(`no server is known for the project ${project.name}`)
  const scope = Scope.makeUnsafe()
  let missing: string | undefined
  try {
    await provideServer(project, scope, kind.start)
    if (kind.pooled) {
      const pooler = await Effect.runPromise(
        Scope.provide(PgBouncer.before(project.getProvidedContext().pgUrl, poolSize), scope)
      )
      project.provide("pgPoolerUrl", pooler.url)
    }
  } catch (error) {
    missing = (error instanceof Error ? error.message : String(error)).trim().replaceAll(/\s*\n\s*/g, " | ")
    // The suites are still read, and a name that matches nothing makes each of their tests a skipped one.
    project.provide("pgUrl", "postgres://cannot.be.had")
    project.config.testNamePattern = /(?!)/
  }
  project.provide("serverUnderTest", { name: project.name, version: kind.version, pooled: kind.pooled, missing })
  return () => Effect.runPromise(Scope.close(scope, Exit.void))
}
