/** The two outboxes: rows come with the commit, as they were given, and no conference has two events (W1, W6). */
import { assert, type Vitest } from "@effect/vitest"
import { Effect } from "effect"
import * as Message from "../../src/domain/ConferenceEnded.ts"
import { provisionTimeout } from "../../src/domain/Phase.ts"
import * as Signal from "../../src/domain/RealtimeSignal.ts"
import { IntegrationOutbox } from "../../src/services/IntegrationOutbox.ts"
import { RealtimeOutbox } from "../../src/services/RealtimeOutbox.ts"
import { conferenceId, jobRunId } from "../support/Sessions.ts"
import { committed, due, endedEvent, eventOf, onEmptyTables, type Ports, traceparent } from "./Fixtures.ts"
import { Harness } from "./Harness.ts"

const message = (n: number) => Message.fromEvent(endedEvent(n), jobRunId(1), traceparent)
const signal = (n: number) => Signal.fromEvent(endedEvent(n), jobRunId(1), traceparent)

const asStored = ({ conferenceId: _, ...row }: Message.OutboxMessage) => row

export const integrationOutboxContract = (it: Vitest.MethodsNonLive<Ports>): void => {
  it.effect("stores each message as it is, visible only after the commit (W1, W3)", () =>
    Effect.gen(function* () {
      const outbox = yield* IntegrationOutbox
      const harness = yield* Harness
      const during = yield* committed(Effect.andThen(outbox.append([message(1), message(2)]), harness.outbox))
      assert.deepStrictEqual(during, [])
      assert.deepStrictEqual(yield* harness.outbox, [asStored(message(1)), asStored(message(2))])
    }).pipe(onEmptyTables)
  )

  it.effect("keeps no message of a transaction that is rolled back (T1)", () =>
    Effect.gen(function* () {
      const outbox = yield* IntegrationOutbox
      const harness = yield* Harness
      yield* Effect.flip(committed(Effect.andThen(outbox.append([message(1)]), Effect.fail("stop"))))
      assert.deepStrictEqual(yield* harness.outbox, [])
    }).pipe(onEmptyTables)
  )

  it.effect("refuses a second event of one conference, from another cycle too (W6)", () =>
    Effect.gen(function* () {
      const outbox = yield* IntegrationOutbox
      const harness = yield* Harness
      yield* committed(outbox.append([message(1)]))
      const again = Message.fromEvent(endedEvent(1), jobRunId(2), traceparent)
      const error = yield* Effect.flip(committed(outbox.append([message(2), again])))
      assert.isTrue(error._tag === "RowRefused" && error.code === "23505")
      assert.deepStrictEqual(yield* harness.outbox, [asStored(message(1))])
    }).pipe(onEmptyTables)
  )

  it.effect("reports a row that the database does not take as refused (T4)", () =>
    Effect.gen(function* () {
      const outbox = yield* IntegrationOutbox
      const harness = yield* Harness
      yield* harness.refuse("append", [conferenceId(2)])
      const error = yield* Effect.flip(committed(outbox.append([message(1), message(2)])))
      assert.isTrue(error._tag === "RowRefused" && error.code === "23514")
      assert.deepStrictEqual(yield* harness.outbox, [])
    }).pipe(onEmptyTables)
  )

  it.effect("appends nothing for no messages", () =>
    Effect.gen(function* () {
      const outbox = yield* IntegrationOutbox
      const harness = yield* Harness
      yield* committed(outbox.append([]))
      assert.deepStrictEqual(yield* harness.outbox, [])
    }).pipe(onEmptyTables)
  )
}

export const realtimeOutboxContract = (it: Vitest.MethodsNonLive<Ports>): void => {
  it.effect("stores each signal as it is, visible only after the commit (W1, W2)", () =>
    Effect.gen(function* () {
      const outbox = yield* RealtimeOutbox
      const harness = yield* Harness
      const failed = Signal.fromEvent(eventOf(provisionTimeout, due(provisionTimeout, 2)), jobRunId(1), traceparent)
      const during = yield* committed(Effect.andThen(outbox.append([signal(1), failed]), harness.realtime))
      assert.deepStrictEqual(during, [])
      assert.deepStrictEqual(yield* harness.realtime, [signal(1), failed])
    }).pipe(onEmptyTables)
  )

  it.effect("keeps no signal of a transaction that is rolled back (T1)", () =>
    Effect.gen(function* () {
      const outbox = yield* RealtimeOutbox
      const harness = yield* Harness
      yield* Effect.flip(committed(Effect.andThen(outbox.append([signal(1)]), Effect.fail("stop"))))
      assert.deepStrictEqual(yield* harness.realtime, [])
    }).pipe(onEmptyTables)
  )

  it.effect("reports a row that the database does not take as refused (T4)", () =>
    Effect.gen(function* () {
      const outbox = yield* RealtimeOutbox
      const harness = yield* Harness
      yield* harness.refuse("appendRealtime", [conferenceId(2)])
      const error = yield* Effect.flip(committed(outbox.append([signal(1), signal(2)])))
      assert.isTrue(error._tag === "RowRefused" && error.code === "23514")
      assert.deepStrictEqual(yield* harness.realtime, [])
    }).pipe(onEmptyTables)
  )

  it.effect("appends nothing for no signals", () =>
    Effect.gen(function* () {
      const outbox = yield* RealtimeOutbox
      const harness = yield* Harness
      yield* committed(outbox.append([]))
      assert.deepStrictEqual(yield* harness.realtime, [])
    }).pipe(onEmptyTables)
  )
}
