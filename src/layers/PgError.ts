/**
 * Sorts what PostgreSQL and its client report into the two kinds of failure (T6, T7): infrastructure, or one refused row.
 * The client's own `isRetryable` is not enough: it calls "server starting up" final and a mistyped host retryable.
 */
import { Cause, Effect } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { RowRefused, StoreUnavailable } from "../services/StoreError.ts"

interface ServerError {
  readonly code?: unknown
  readonly message?: unknown
}

const serverError = (error: SqlError): ServerError => {
  const cause: unknown = error.reason.cause
  return typeof cause === "object" && cause !== null ? cause : {}
}

const sqlState = (error: SqlError): string | undefined => {
  const { code } = serverError(error)
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

const describe = (error: SqlError): string => {
  const { message } = serverError(error)
  const text = typeof message === "string" && message !== "" ? message : error.message
  const state = sqlState(error)
  return state === undefined ? text : `${text} (SQLSTATE ${state})`
}

// Waiting does not mend these: credentials, TLS, database name, rights, schema. The first two come without a SQLSTATE
// when it is the client that finds them.
const isFinal = (error: SqlError): boolean => {
  const state = sqlState(error) ?? ""
  return (
    /^(28|42|3D|3F)/.test(state) ||
    error.reason._tag === "AuthenticationError" ||
    describe(error).includes("does not support TLS")
  )
}

const undefinedTable = "42P01"

export const storeUnavailable =
  (operation: string) =>
  (error: SqlError): StoreUnavailable =>
    new StoreUnavailable({
      operation,
      reason: describe(error) + (sqlState(error) === undefinedTable ? "; has `migrate` been run?" : ""),
      isRetryable: !isFinal(error),
      cause: error
    })

// Never about one row: connection, transaction state, deadlock, resources, lock waits, cancellation, server stop, system.
const infrastructure = /^(03|08|0B|25(?!006)|2[68D]|34|3B|3D|3F|40|53|55P03|57|58|72|F0|HV|XX000)/
// About the values being written: data exceptions, constraints, errors raised by triggers, program limits.
const aboutRow = /^(09|2[1237]|44|54|P0)/

/**
 * For statements that write a batch's rows. A trigger may raise whatever code it likes, and row-level security answers
 * with that of a missing right, so most codes do not tell: who wrote the row finds out by leaving others out.
 */
const writeError =
  (operation: string) =>
  (error: SqlError): RowRefused | StoreUnavailable => {
    const code = sqlState(error)
    if (code === undefined || infrastructure.test(code)) return storeUnavailable(operation)(error)
    const reason = String(serverError(error).message ?? error.message)
    return new RowRefused({ code, reason, isCertain: aboutRow.test(code) })
  }

/** Reads or writes outside a batch's rows: every failure is infrastructure. */
export const orUnavailable =
  (operation: string) =>
  <A, R>(effect: Effect.Effect<A, SqlError, R>): Effect.Effect<A, StoreUnavailable, R> =>
    Effect.mapError(effect, storeUnavailable(operation))

export const orRefused =
  (operation: string) =>
  <A, R>(effect: Effect.Effect<A, SqlError, R>): Effect.Effect<A, RowRefused | StoreUnavailable, R> =>
    Effect.mapError(effect, writeError(operation))

// A connection lost inside a transaction makes the client's ROLLBACK fail, and that failure turns every typed error
// beside it into a defect. It is infrastructure all the same.
export const lostConnectionAsFailure =
  (operation: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | StoreUnavailable, R> =>
    Effect.catchCause(effect, (cause): Effect.Effect<never, E | StoreUnavailable> => {
      if (Cause.hasInterrupts(cause)) return Effect.failCause(cause)
      const lost = cause.reasons.find((reason) => Cause.isDieReason(reason) && isSqlError(reason.defect))
      return lost !== undefined && Cause.isDieReason(lost) && isSqlError(lost.defect)
        ? Effect.fail(storeUnavailable(operation)(lost.defect))
        : Effect.failCause(cause)
    })
