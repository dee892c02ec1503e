/** The tables at the end: every room as the model has it, and for each closed one its rows, once (W1, W2, W7). */
import { Violated } from "./Clause.ts"
import type { Model } from "./Model.ts"
import { dueAt, rules, sameRow } from "./Rules.ts"
import type { Story } from "./Story.ts"

const violated = (clause: Violated["clause"], detail: string) => new Violated({ clause, detail })

const times = (ids: ReadonlyArray<string>, id: string) => ids.filter((other) => other === id).length

export const check = (story: Story, model: Model): Violated | undefined => {
  if (story.sessions.length !== model.rooms.size) return violated("untouched", "rooms came or went by themselves")
  if (story.refused.length > 0) return violated("nothing-refused", `${story.refused[0]} has a poison record`)
  const closings = new Map(story.closings.map((closing) => [closing.conferenceId, closing]))
  for (const row of story.sessions) {
    if (!sameRow(row, model.rooms.get(row.id))) return violated("untouched", `${row.id} is not as it was left`)
    const rule = rules.find(({ becomes }) => becomes.endReason === row.endReason)
    const closing = closings.get(row.id)
    const announcements = rule?.becomes.status === "Ended" ? 1 : 0
    const rowsAre =
      times(story.announced, row.id) === announcements &&
      times(story.pushed, row.id) === (rule === undefined ? 0 : 1) &&
      times(
        story.closings.map((other) => other.conferenceId),
        row.id
      ) === (rule === undefined ? 0 : 1)
    if (!rowsAre) return violated("one-event", `${row.id}, ${row.status}`)
    if (rule === undefined) continue
    const fits =
      closing?.phase === rule.name &&
      closing.asOf === row.endedAt &&
      closing.dueAt === dueAt(rule, story.plan.settings, row)
    if (!fits) return violated("one-event", `the evidence of ${row.id} does not fit it`)
  }
  return undefined
}
