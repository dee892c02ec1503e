/**
 * What kafkajs logs, for whoever looks closely: at debug, since it says the same for as long as an outage lasts, and what
 * matters of it is the reason of a failed send, which the dispatcher says once.
 */
import { Effect } from "effect"
import type { LogEntry, logCreator } from "kafkajs"

const annotations = ({ namespace, log }: LogEntry) =>
  Object.fromEntries(
    [["namespace", namespace], ...["broker", "error"].map((name) => [name, log[name]])].filter(
      ([, value]) => typeof value === "string" && value !== ""
    )
  )

/** `isMuted`: of a client that was given up nothing is heard any more. */
export const makeLog = Effect.gen(function* () {
  const run = Effect.runForkWith(yield* Effect.context<never>())
  return (isMuted: () => boolean): logCreator =>
    () =>
    (entry) => {
      if (isMuted()) return
      run(Effect.logDebug(`kafkajs: ${entry.log.message}`).pipe(Effect.annotateLogs(annotations(entry))))
    }
})
