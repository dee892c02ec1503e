/** T1: a batch is fixed whole or not at all, and what follows the commit follows it for certain. */
import { assert, type Vitest } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Ref } from "effect"
import * as Message from "../../src/domain/ConferenceEnded.ts"
import { emptyRoom } from "../../src/domain/Phase.ts"
import { ConferenceRepository } from "../../src/services/ConferenceRepository.ts"
import { IntegrationOutbox } from "../../src/services/IntegrationOutbox.ts"
import { Transaction } from "../../src/services/Transaction.ts"
import { conferenceId, jobRunId } from "../support/Sessions.ts"
import {
  claimIds,
  committed,
  due,
  emptyFor,
  endedEvent,
  eventOf,
  onEmptyTables,
  type Ports,
  scan,
  traceparent
} from "./Fixtures.ts"
import { Harness } from "./Harness.ts"

const append = (...numbers: ReadonlyArray<number>) =>
  Effect.flatMap(IntegrationOutbox, (outbox) =>
    outbox.append(numbers.map((n) => Message.fromEvent(endedEvent(n), jobRunId(1), traceparent)))
  )

/** Numbers of the conferences whose message others can see. */
const visible = Effect.flatMap(Harness, (harness) => harness.outbox).pipe(
  Effect.map((rows) => rows.map((row) => Number.parseInt(row.messageKey.slice(-12), 16)))
)

const counted = Effect.map(Ref.make(0), (ref) => ({
  bump: () => Ref.update(ref, (n) => n + 1),
  count: Ref.get(ref)
}))

export const transactionContract = (it: Vitest.MethodsNonLive<Ports>): void => {
  commitAndRollback(it)
  savepoints(it)
  lostConnections(it)
}

const commitAndRollback = (it: Vitest.MethodsNonLive<Ports>): void => {
  it.effect("commits what the body wrote and hands its result to onCommitted once others can see it (T1)", () =>
    Effect.gen(function* () {
      const transaction = yield* Transaction
      const seen = yield* Ref.make<unknown>(null)
      const result = yield* transaction.run(Effect.as(append(1, 2), "written"), (given) =>
        Effect.flatMap(visible, (numbers) => Ref.set(seen, [given, numbers]))
      )
      assert.strictEqual(result, "written")
      assert.deepStrictEqual(yield* Ref.get(seen), ["written", [1, 2]])
    }).pipe(onEmptyTables)
  )

  it.effect("shows nothing to others before the commit (T1)", () =>
    Effect.gen(function* () {
      const during = yield* committed(Effect.andThen(append(1), visible))
      assert.deepStrictEqual(during, [])
      assert.deepStrictEqual(yield* visible, [1])
    }).pipe(onEmptyTables)
  )

  it.effect("rolls back on a failure and passes it on as it is (T6)", () =>
    Effect.gen(function* () {
      const transaction = yield* Transaction
      const after = yield* counted
      const error = yield* transaction
        .run(Effect.andThen(append(1), Effect.fail("refused")), after.bump)
        .pipe(Effect.flip)
      assert.strictEqual(error, "refused")
      assert.deepStrictEqual(yield* visible, [])
      assert.strictEqual(yield* after.count, 0)
    }).pipe(onEmptyTables)
  )

  it.effect("rolls back on a defect, which stays one (T6)", () =>
    Effect.gen(function* () {
      const transaction = yield* Transaction
      const after = yield* counted
      const exit = yield* transaction.run(Effect.andThen(append(1), Effect.die("bug")), after.bump).pipe(Effect.exit)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause) && Cause.squash(exit.cause) === "bug")
      assert.deepStrictEqual(yield* visible, [])
      assert.strictEqual(yield* after.count, 0)
    }).pipe(onEmptyTables)
  )

  it.effect("rolls back on interruption and frees its row locks (L5)", () =>
    Effect.gen(function* () {
      const transaction = yield* Transaction
      const harness = yield* Harness
      yield* harness.insertSessions([emptyFor(1, 120)])
      const after = yield* counted
      const working = yield* Deferred.make<void>()
      const body = Effect.all([claimIds(emptyRoom), append(1), Deferred.succeed(working, undefined), Effect.never])
      const fiber = yield* Effect.forkChild(transaction.run(body, after.bump))
      yield* Deferred.await(working)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(yield* visible, [])
      assert.strictEqual(yield* after.count, 0)
      assert.deepStrictEqual(yield* committed(claimIds(emptyRoom)), [conferenceId(1)])
    }).pipe(onEmptyTables)
  )

  it.effect("runs onCommitted when it is interrupted while the commit is on its way (L5, R10)", () =>
    Effect.gen(function* () {
      const transaction = yield* Transaction
      const harness = yield* Harness
      const after = yield* counted
      const commit = yield* harness.holdCommit
      const fiber = yield* Effect.forkChild(transaction.run(append(1), after.bump))
      yield* commit.reached
      const interruption = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
      yield* commit.release
      yield* Fiber.join(interruption)
      assert.deepStrictEqual(yield* visible, [1])
      assert.strictEqual(yield* after.count, 1)
    }).pipe(Effect.scoped, onEmptyTables)
  )
}

const savepoints = (it: Vitest.MethodsNonLive<Ports>): void => {
  it.effect("undoes only the writes of an attempt that fails (T4)", () =>
    Effect.gen(function* () {
      const transaction = yield* Transaction
      const failed = transaction.attempt(Effect.andThen(append(2), Effect.fail("refused")))
      const error = yield* committed(
        Effect.gen(function* () {
          yield* append(1)
          const outcome = yield* Effect.flip(failed)
          yield* transaction.attempt(append(3))
          return outcome
        })
      )
      assert.strictEqual(error, "refused")
      assert.deepStrictEqual(yield* visible, [1, 3])
    }).pipe(onEmptyTables)
  )

  it.effect("undoes the writes of an attempt that dies, and goes on (T4)", () =>
    Effect.gen(function* () {
      const transaction = yield* Transaction
      const died = transaction.attempt(Effect.andThen(append(2), Effect.die("bug")))
      yield* committed(Effect.all([append(1), Effect.exit(died), append(3)]))
      assert.deepStrictEqual(yield* visible, [1, 3])
    }).pipe(onEmptyTables)
  )

  it.effect("undoes an outer attempt whole, inner attempts included (T4)", () =>
    Effect.gen(function* () {
      const transaction = yield* Transaction
      const outer = transaction.attempt(Effect.all([transaction.attempt(append(2)), append(3), Effect.fail("refused")]))
      yield* committed(Effect.all([append(1), Effect.flip(outer)]))
      assert.deepStrictEqual(yield* visible, [1])
    }).pipe(onEmptyTables)
  )

  it.effect("goes on after a row that the database refused in an attempt (T4)", () =>
    Effect.gen(function* () {
      const transaction = yield* Transaction
      yield* committed(append(1))
      const error = yield* committed(
        Effect.gen(function* () {
          const refused = yield* Effect.flip(transaction.attempt(append(2, 1)))
          yield* append(3)
          return refused
        })
      )
      assert.strictEqual(error._tag, "RowRefused")
      assert.deepStrictEqual(yield* visible, [1, 3])
    }).pipe(onEmptyTables)
  )

  it.effect("shows a deferred constraint's refusal in the attempt, not at the commit (T4)", () =>
    Effect.gen(function* () {
      const transaction = yield* Transaction
      const repository = yield* ConferenceRepository
      const harness = yield* Harness
      const rows = [due(emptyRoom, 1), due(emptyRoom, 2)]
      yield* harness.insertSessions(rows)
      yield* harness.refuse("deferred", [conferenceId(1)])
      const outcomes = yield* committed(
        Effect.forEach(rows, (row) =>
          transaction.attempt(repository.apply(scan(emptyRoom), [eventOf(emptyRoom, row)])).pipe(Effect.result)
        )
      )
      assert.deepStrictEqual(
        outcomes.map((outcome) => outcome._tag),
        ["Failure", "Success"]
      )
      assert.isTrue(outcomes[0]?._tag === "Failure" && outcomes[0].failure._tag === "RowRefused")
      assert.deepStrictEqual(
        (yield* harness.sessions).map((row) => row.status),
        ["Active", "Ended"]
      )
    }).pipe(onEmptyTables)
  )
}

const lostConnections = (it: Vitest.MethodsNonLive<Ports>): void => {
  it.effect("fails as infrastructure when a refused statement was swallowed outside an attempt (T7)", () =>
    Effect.gen(function* () {
      const transaction = yield* Transaction
      const after = yield* counted
      yield* committed(append(1))
      const body = Effect.all([append(2), Effect.exit(append(1))])
      const error = yield* Effect.flip(transaction.run(body, after.bump))
      assert.strictEqual(error._tag, "StoreUnavailable")
      assert.deepStrictEqual(yield* visible, [1])
      assert.strictEqual(yield* after.count, 0)
    }).pipe(onEmptyTables)
  )

  it.effect("turns a lost connection into a typed failure, undoes the batch and works again afterwards (T6)", () =>
    Effect.gen(function* () {
      const transaction = yield* Transaction
      const harness = yield* Harness
      const after = yield* counted
      const body = Effect.all([append(1), harness.killConnections, append(2)])
      const error = yield* Effect.flip(transaction.run(body, after.bump))
      assert.isTrue(error._tag === "StoreUnavailable" && error.isRetryable)
      assert.deepStrictEqual(yield* visible, [])
      assert.strictEqual(yield* after.count, 0)
      yield* committed(append(3))
      assert.deepStrictEqual(yield* visible, [3])
    }).pipe(onEmptyTables)
  )

  it.effect("keeps a connection lost in an attempt apart from a refused row (T7)", () =>
    Effect.gen(function* () {
      const transaction = yield* Transaction
      const harness = yield* Harness
      const body = Effect.andThen(append(1), transaction.attempt(Effect.andThen(harness.killConnections, append(2))))
      const error = yield* Effect.flip(transaction.run(body, () => Effect.void))
      assert.strictEqual(error._tag, "StoreUnavailable")
      assert.deepStrictEqual(yield* visible, [])
    }).pipe(onEmptyTables)
  )
}
