/** Ports that treat the rows wrongly. */
import { Effect, Layer, Result } from "effect"
import type { ConferenceSession } from "../../src/domain/ConferenceSession.ts"
import { ConferenceRepository } from "../../src/services/ConferenceRepository.ts"
import { ReaperJournal } from "../../src/services/ReaperJournal.ts"
import { MemoryDatabase } from "../fakes/MemoryDatabase.ts"
import { autocommitted, statement } from "../fakes/MemoryTransaction.ts"
import type { SessionRow } from "../support/Sessions.ts"
import { inOrder, type Rule, rules } from "./Rules.ts"

const ruleOf = (name: string): Rule | undefined => rules.find((rule) => rule.name === name)

/** Reads without row locks and writes what it has read, whatever has happened since (against R9). */
export const writesBlindly = Layer.effect(
  ConferenceRepository,
  Effect.map(ConferenceRepository, (repository) =>
    ConferenceRepository.of({
      ...repository,
      claim: ({ phase, cutoff }, limit, tried) =>
        statement("claim", (tx) =>
          Effect.sync(() => {
            const rule = ruleOf(phase.name)
            if (rule === undefined) return []
            const due = [...tx.rows("sessions").values()].filter(
              (row) => rule.isOpenTo(row) && rule.since(row) <= cutoff && !tried.includes(row.id)
            )
            return inOrder(rule, due)
              .slice(0, limit)
              .map((row) => ({
                id: row.id,
                // Generated rows are well formed: what decoding would give is what is there.
                session: Result.succeed(row as unknown as ConferenceSession),
                poisonAttempts: 0
              }))
          })
        ),
      apply: (scan, events) =>
        statement("apply", (tx) =>
          Effect.gen(function* () {
            for (const event of events) {
              const row = tx.rows("sessions").get(event.conferenceId)
              if (row === undefined) continue
              const changes: Partial<SessionRow> = {
                status: scan.phase.to,
                endReason: scan.phase.endReason,
                endedAt: scan.asOf,
                updatedAt: scan.asOf,
                ...(event._tag === "ConferenceEnded" ? { durationSeconds: event.durationSeconds } : {})
              }
              yield* tx.put("sessions", row.id, { ...row, ...changes })
            }
            return new Set(events.map((event) => event.conferenceId))
          })
        )
    })
  )
)

/** Takes the rooms for its own to tidy away (against INV-CONF-4). */
export const prunesRooms = Layer.effect(
  ReaperJournal,
  Effect.gen(function* () {
    const database = yield* MemoryDatabase
    const journal = yield* ReaperJournal
    const removeClosed = autocommitted(database, "prune", (tx) =>
      Effect.gen(function* () {
        for (const [id, row] of tx.rows("sessions")) {
          if (row.endedAt !== null) yield* tx.put("sessions", id, undefined)
        }
      })
    )
    return ReaperJournal.of({ ...journal, prune: () => removeClosed })
  })
)
