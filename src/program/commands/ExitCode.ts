/** The exit code of the process, where a command decides it itself. */
import { Context, Effect, Ref } from "effect"

export class ExitCode extends Context.Service<ExitCode, Ref.Ref<number>>()("conference-room-reaper/ExitCode") {}

/** The same code for a command that came to its result although a signal has interrupted it; undefined: it did not. */
export const DespiteSignal = Context.Reference<Ref.Ref<number | undefined>>("conference-room-reaper/DespiteSignal", {
  defaultValue: () => Ref.makeUnsafe<number | undefined>(undefined)
})

export const exitWith = (code: number) =>
  Effect.gen(function* () {
    yield* Ref.set(yield* ExitCode, code)
    yield* Ref.set(yield* DespiteSignal, code)
  })
