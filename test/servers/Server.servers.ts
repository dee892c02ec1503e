/** What the suites of this project run on is what their names promise. */
import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import { inject } from "vitest"
import { clientConfig } from "../../src/layers/Database.ts"
import { freshDatabase } from "../support/postgres.ts"

const { name, version, pooled, missing } = inject("serverUnderTest")

describe(name, () => {
  it.live(missing === undefined ? "is the server under test" : `cannot be had: ${missing}`, () =>
    Effect.gen(function* () {
      const { worker } = yield* freshDatabase
      const clients = yield* Effect.replicateEffect(PgClient.makeClient(clientConfig(worker, "server test")), 2)
      const answers = yield* Effect.forEach(
        clients,
        (sql) => sql<{ pid: number; version: number }>`select pg_backend_pid() as pid,
          current_setting('server_version_num')::int / 10000 as version`
      )
      const rows = answers.flat()
      expect(rows.map((row) => row.version)).toEqual([version, version])
      // Two open connections are one to the server where a pooler lends it for each transaction.
      expect(new Set(rows.map((row) => row.pid)).size).toBe(pooled ? 1 : 2)
    }).pipe(Effect.provide(Reactivity.layer))
  )
})
