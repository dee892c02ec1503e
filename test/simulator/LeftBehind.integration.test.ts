import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as Instant from "../../src/domain/Instant.ts"
import { defaults } from "../../src/services/ReaperOptions.ts"
import { audit } from "../../src/simulator/Audit.ts"
import { leaveBehind } from "../../src/simulator/LeftBehind.ts"
import { systemNow } from "../../src/simulator/MessengerWrites.ts"
import { database } from "./messenger.ts"
import { cycle } from "./rightWorker.ts"

const windows = defaults

layer(database, { excludeTestServices: true })("rooms left behind", (it) => {
  it.effect("are due at once, a third for each phase, and never seen half written (R1, R2, R3)", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const asOf = yield* systemNow
      // What a worker can see of each room first: the room as it stands when the transaction that made it commits.
      yield* sql`create table first_seen (status text)`
      yield* sql.unsafe(`create function see() returns trigger language plpgsql as $$
        begin
          insert into first_seen select status from messenger.conference_sessions where id = new.id;
          return new;
        end $$`)
      yield* sql`create constraint trigger see after insert on messenger.conference_sessions
        deferrable initially deferred for each row execute function see()`
      yield* leaveBehind(windows, 6)
      const seen = yield* sql<{ status: string }>`select status from first_seen order by status`
      assert.deepStrictEqual(
        seen.map((row) => row.status),
        ["Active", "Active", "Active", "Active", "Provisioning", "Provisioning"]
      )
      yield* cycle(windows, Instant.plus(asOf, windows.emptyRoomGrace))
      const report = yield* audit({
        windows,
        asOf: Instant.plus(asOf, windows.emptyRoomGrace),
        allowance: windows.emptyRoomGrace,
        provisionFailedSignal: true
      })
      assert.deepStrictEqual(report.breaches, [])
      const { emptyTimeout, timeout, provisionFailed } = report.figures
      assert.deepStrictEqual([emptyTimeout, timeout, provisionFailed], [2, 2, 2])
    })
  )
})
