/** What kafkajs logs, as warnings of our own log: a few lines a minute, since an outage makes it say the same for hours. */
import { Effect } from "effect"
import type { LogEntry, logCreator } from "kafkajs"

const linesPerMinute = 10
const minute = 60_000

const annotations = ({ namespace, log }: LogEntry) =>
  Object.fromEntries(
    [["namespace", namespace], ...["broker", "error"].map((name) => [name, log[name]])].filter(
      ([, value]) => typeof value === "string" && value !== ""
    )
  )

/** `isMuted`: of a client that was given up nothing is heard any more. */
export const makeLog = Effect.gen(function* () {
  const run = Effect.runForkWith(yield* Effect.context<never>())
  let since = Number.NEGATIVE_INFINITY
  let lines = 0
  const write = (entry: LogEntry) => {
    const now = performance.now()
    if (now - since >= minute) {
      if (lines > linesPerMinute) run(Effect.logWarning(`kafkajs: ${lines - linesPerMinute} more lines were left out`))
      since = now
      lines = 0
    }
    lines += 1
    if (lines > linesPerMinute) return
    run(Effect.logWarning(`kafkajs: ${entry.log.message}`).pipe(Effect.annotateLogs(annotations(entry))))
  }
  return (isMuted: () => boolean): logCreator =>
    () =>
    (entry) => {
      if (!isMuted()) write(entry)
    }
})
