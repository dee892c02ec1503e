/**
 * How the database can fail a batch. The two are kept apart by type (T7): an infrastructure failure rolls the batch
 * back, a refused row is excluded and the batch goes on.
 */
import { Schema } from "effect"

/** Anything that is not about one row: connection, deadlock, serialization, timeout, server stop, rights, schema. */
export class StoreUnavailable extends Schema.TaggedError<StoreUnavailable>()("StoreUnavailable", {
  /** What was being done, for example `claim`. */
  operation: Schema.String,
  /** The server's or the socket's own words, with the SQLSTATE where there is one. */
  reason: Schema.String,
  /** False where waiting does not help: wrong credentials, no such database, missing rights. */
  isRetryable: Schema.Boolean,
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message(): string {
    return `${this.operation}: ${this.reason}`
  }
}

/** The database refused what was written for a row: constraint, trigger, value out of range (T4). */
export class RowRefused extends Schema.TaggedError<RowRefused>()("RowRefused", {
  /** SQLSTATE. */
  code: Schema.String,
  reason: Schema.String,
  /** False when the code may as well mean that every row would be refused: then the other rows of the batch decide. */
  isCertain: Schema.Boolean
}) {
  override get message(): string {
    return `${this.reason} (SQLSTATE ${this.code})`
  }
}
