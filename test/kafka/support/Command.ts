/** A program that is run to its end for its output; killed when the caller is interrupted. */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { Effect } from "effect"
import { KafkaUnavailable } from "./KafkaUnavailable.ts"

const run = promisify(execFile)

const said = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  const { stdout = "", stderr = "" } = cause as Partial<Record<"stdout" | "stderr", string>>
  return [cause.message, stdout, stderr].join("\n").slice(-4_000)
}

/** Its standard output. */
export const output = (program: string, args: ReadonlyArray<string>, timeout = 60_000) =>
  Effect.tryPromise({
    try: (signal) => run(program, [...args], { signal, timeout, killSignal: "SIGKILL", maxBuffer: 2 ** 28 }),
    catch: (cause) => new KafkaUnavailable({ message: `${program} failed: ${said(cause)}` })
  }).pipe(Effect.map(({ stdout }) => stdout))
