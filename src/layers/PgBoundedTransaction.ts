/**
 * `sql.withTransaction` with a time limit on BEGIN, COMMIT, ROLLBACK and savepoints (L4, T6). The client waits for these
 * uninterruptibly and for ever, so that on a network which loses packets without a reset one of them would hold the cycle,
 * and with it the worker, for as long as TCP goes on trying. Past the limit the connection is thrown away.
 */
import { Effect, Exit, Fiber, Option } from "effect"
import { makeWithTransaction, type SqlClient } from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import { ConnectionError, SqlError, UnknownError } from "effect/sql/SqlError"

// Far more than any of them takes; a COMMIT may have to wait for the disk or for a standby.
const limit = "10 seconds"

const noAnswer = (statement: string) =>
  new SqlError({
    reason: new ConnectionError({
      cause: new Error(`no answer to ${statement} in ${limit}`),
      message: `no answer to ${statement} in ${limit}`,
      operation: "transaction"
    })
  })

const unfinished = new SqlError({
  reason: new UnknownError({
    cause: new Error("COMMIT rolled back an aborted transaction"),
    message: "COMMIT rolled back an aborted transaction",
    operation: "commit"
  })
})

// In a fiber of its own that is left behind: the client retires a connection that is given back while a statement is
// still under way on it, and that ends the fiber. So no answer that comes late can reach the next user of the connection.
const control = (connection: Connection, statement: string): Effect.Effect<unknown, SqlError> =>
  Effect.forkDetach(connection.executeRaw(statement, []), { startImmediately: true }).pipe(
    Effect.flatMap((fiber) => Effect.timeoutOption(Fiber.await(fiber), limit)),
    Effect.flatMap(Option.getOrElse(() => Exit.fail(noAnswer(statement))))
  )

const rolledBack = (answer: unknown): boolean =>
  typeof answer === "object" && answer !== null && "command" in answer && answer.command === "ROLLBACK"

export const boundedWithTransaction = (sql: SqlClient): SqlClient["withTransaction"] =>
  makeWithTransaction({
    transactionService: sql.transactionService,
    spanAttributes: [["db.system.name", "postgresql"]],
    acquireConnection: (restore) => restore(sql.reserve),
    begin: (connection, statement) => control(connection, statement ?? "BEGIN"),
    savepoint: (connection, id) => control(connection, `SAVEPOINT effect_sql_${id}`),
    releaseSavepoint: (connection, id) => control(connection, `RELEASE SAVEPOINT effect_sql_${id}`),
    rollbackSavepoint: (connection, id) => control(connection, `ROLLBACK TO SAVEPOINT effect_sql_${id}`),
    rollback: (connection) => control(connection, "ROLLBACK"),
    // The server answers ROLLBACK when the transaction was aborted before.
    commit: (connection) =>
      Effect.flatMap(control(connection, "COMMIT"), (answer) =>
        rolledBack(answer) ? Effect.fail(unfinished) : Effect.void
      )
  })
