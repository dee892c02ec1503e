/**
 * How the embedded PostgreSQL's programs are run, and the one error that its start can end with. The server refuses to
 * run as root, so root runs every program as another account; nothing here ever executes them with root's rights.
 */
import { spawn } from "node:child_process"
import { Effect, Schema } from "effect"

/** One message that says what is wrong and what to do; it never contains the password. */
export class EmbeddedPostgresError extends Schema.TaggedError<EmbeddedPostgresError>()("EmbeddedPostgresError", {
  message: Schema.String
}) {}

/** Who runs the server; undefined is the user of this process. */
export type Account = { readonly uid: number; readonly gid: number } | undefined

export const otherServer = "or set DATABASE_URL to use a server of your own"

export const lastLines = (text: string): string => text.trim().split("\n").slice(-5).join(" | ")

const reason = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** File work; what fails is named, for example "create the folder". */
export const fileWork = <A>(what: string, work: () => Promise<A>): Effect.Effect<A, EmbeddedPostgresError> =>
  Effect.tryPromise({
    try: work,
    catch: (cause) =>
      new EmbeddedPostgresError({
        message: `the embedded PostgreSQL cannot ${what}: ${reason(cause)}; mend that, ${otherServer}`
      })
  })

/** Runs a program to its end and answers exit code and output. */
export const execute = (account: Account, file: string, args: ReadonlyArray<string>) =>
  Effect.callback<{ readonly code: number; readonly output: string }>((resume) => {
    let output = ""
    const child = spawn(file, args, {
      ...account,
      // The caller's folder may be closed to the account, and PG* variables of the caller would redirect the programs.
      cwd: "/",
      env: { LC_ALL: "C" },
      stdio: ["ignore", "pipe", "pipe"],
      // A session of its own: Ctrl-C in the terminal must reach this process alone, which then stops the server itself.
      detached: true
    })
    const append = (chunk: Buffer) => {
      output += chunk.toString("utf8")
    }
    child.stdout.on("data", append)
    child.stderr.on("data", append)
    child.on("error", (error) => resume(Effect.succeed({ code: -1, output: error.message })))
    child.on("close", (code) => resume(Effect.succeed({ code: code ?? -1, output })))
    return Effect.sync(() => child.kill("SIGTERM"))
  })
