/** A recorder that writes down what it is asked and answers as the test says. */
import { Context, Effect, Layer } from "effect"
import type { StopRequest } from "../../src/domain/StopRequest.ts"
import { Recorder, type RecorderUnreachable, type StopResult } from "../../src/services/Recorder.ts"

type Answer = (request: StopRequest) => Effect.Effect<StopResult, RecorderUnreachable>

export class RecorderControl extends Context.Service<
  RecorderControl,
  {
    /** Every request so far, in order, also those that were then refused. */
    readonly requests: Effect.Effect<ReadonlyArray<StopRequest>>
    readonly answerWith: (answer: Answer) => Effect.Effect<void>
  }
>()("test/RecorderControl") {}

const make = Effect.sync(() => {
  const requests: Array<StopRequest> = []
  let answer: Answer = () => Effect.succeed("stopped")
  const recorder = Recorder.of({
    requestStop: (request) =>
      Effect.suspend(() => {
        requests.push(request)
        return answer(request)
      })
  })
  const control = RecorderControl.of({
    requests: Effect.sync(() => [...requests]),
    answerWith: (next) =>
      Effect.sync(() => {
        answer = next
      })
  })
  return Context.make(Recorder, recorder).pipe(Context.add(RecorderControl, control))
})

export const layer = Layer.effectContext(make)
