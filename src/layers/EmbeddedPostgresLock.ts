/**
 * Locks between processes that end with their holder, however it died: no pid to compare, nothing stale to clear.
 * Node has no file lock of its own, so SQLite's is used, the kernel's lock on an empty database file that is never written.
 */
import { DatabaseSync } from "node:sqlite"
import { Effect, Option, Schedule, type Scope } from "effect"
import { EmbeddedPostgresError, otherServer } from "./EmbeddedPostgresCommand.ts"

export type Mode = "shared" | "exclusive"

const begin: Record<Mode, string> = {
  // The lock is taken by the first read and kept by the open transaction.
  shared: "begin; select 1 from sqlite_schema",
  exclusive: "begin exclusive"
}

const isBusy = (cause: unknown): boolean =>
  typeof cause === "object" && cause !== null && "errcode" in cause && cause.errcode === 5

const open = (file: string, mode: Mode): Option.Option<DatabaseSync> => {
  const handle = new DatabaseSync(file)
  try {
    // Else an exclusive transaction puts a journal beside the file, which a killed holder would leave.
    handle.exec("pragma journal_mode = memory")
    handle.exec(begin[mode])
    return Option.some(handle)
  } catch (cause) {
    handle.close()
    if (isBusy(cause)) return Option.none()
    throw cause
  }
}

const release = (held: Option.Option<DatabaseSync>) => Effect.sync(() => Option.map(held, (handle) => handle.close()))

/** Takes the lock for the scope unless another holds it; answers whether it was taken. */
export const tryLock = (file: string, mode: Mode): Effect.Effect<boolean, EmbeddedPostgresError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.try({
      try: () => open(file, mode),
      catch: (cause) =>
        new EmbeddedPostgresError({
          message: `cannot lock ${file} (${cause instanceof Error ? cause.message : cause}): it may belong to another user; remove the data folder, ${otherServer}`
        })
    }),
    release
  ).pipe(Effect.map(Option.isSome))

/** Waits for the lock, two minutes at most. */
export const lock = (file: string, mode: Mode): Effect.Effect<void, EmbeddedPostgresError, Scope.Scope> =>
  tryLock(file, mode).pipe(
    Effect.repeat({ until: (held) => held, schedule: Schedule.spaced("100 millis") }),
    Effect.timeoutOrElse({
      duration: "2 minutes",
      orElse: () =>
        Effect.fail(new EmbeddedPostgresError({ message: `${file} was held by another process for 2 minutes` }))
    }),
    Effect.asVoid
  )
