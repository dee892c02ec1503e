import { Effect, Layer } from "effect"
import { ReaperJournal } from "../../src/services/ReaperJournal.ts"
import { MemoryDatabase, type MemoryTx } from "./MemoryDatabase.ts"
import { autocommitted, statement } from "./MemoryTransaction.ts"

const keptRuns = 10_000

const newestRuns = (tx: MemoryTx) => [...tx.rows("runs").values()].sort((a, b) => Number(b.asOf - a.asOf))

/** Evidence, one row for each conference, and the history of runs (W7). */
export const layer = Layer.effect(
  ReaperJournal,
  Effect.gen(function* () {
    const database = yield* MemoryDatabase
    return ReaperJournal.of({
      appendClosings: (closings) =>
        statement("appendClosings", (tx) =>
          database.faults
            .check(
              "appendClosings",
              closings.map((closing) => closing.conferenceId)
            )
            .pipe(
              Effect.andThen(
                Effect.forEach(closings, (closing) => tx.insert("closings", closing.conferenceId, closing), {
                  discard: true
                })
              )
            )
        ),

      recordRun: (summary, instance) =>
        autocommitted(database, "recordRun", (tx) => tx.put("runs", summary.jobRunId, { ...summary, instance })),

      prune: (closingsBefore) =>
        autocommitted(database, "prune", (tx) =>
          Effect.gen(function* () {
            for (const [key, closing] of tx.rows("closings")) {
              if (closing.asOf < closingsBefore) yield* tx.put("closings", key, undefined)
            }
            for (const run of newestRuns(tx).slice(keptRuns)) yield* tx.put("runs", run.jobRunId, undefined)
            const sessions = tx.rows("sessions")
            for (const [key, { conferenceId }] of tx.rows("poison")) {
              const status = sessions.get(conferenceId)?.status
              if (status !== "Active" && status !== "Provisioning") yield* tx.put("poison", key, undefined)
            }
          })
        )
    })
  })
)
