/** The exit code of the process, where a command decides it itself. */
import { Context, Effect, Ref } from "effect"

export class ExitCode extends Context.Service<ExitCode, Ref.Ref<number>>()("conference-room-reaper/ExitCode") {}

export const exitWith = (code: number) => Effect.flatMap(ExitCode, (ref) => Ref.set(ref, code))
