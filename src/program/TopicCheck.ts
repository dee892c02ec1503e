/**
 * A look at the topic at start, and again until a broker has answered: what is wrong with it is said once, with the
 * command that mends it. Never creates it.
 */
import { Duration, Effect } from "effect"
import { topic } from "../domain/ConferenceEnded.ts"
import { EventPublisher, type TopicState } from "../services/EventPublisher.ts"

const createCommand = "npm run -s reaper -- topic create"

const lookAgain = Duration.seconds(30)

const say = (found: TopicState) => {
  if (found.state === "ready") {
    return Effect.logInfo("the topic is there").pipe(Effect.annotateLogs({ topic, partitions: found.partitions }))
  }
  if (found.state === "missing") {
    return Effect.logWarning(`the topic does not exist, events wait; it is created by: ${createCommand}`).pipe(
      Effect.annotateLogs({ topic })
    )
  }
  return Effect.logWarning("the topic could not be looked at, events wait until the broker answers").pipe(
    Effect.annotateLogs({ topic, reason: found.reason })
  )
}

export const warn = Effect.gen(function* () {
  const { topic: look } = yield* EventPublisher
  const first = yield* look
  yield* say(first)
  if (first.state !== "unknown") return
  const known = yield* Effect.repeat(Effect.delay(look, lookAgain), { until: ({ state }) => state !== "unknown" })
  yield* say(known)
})
