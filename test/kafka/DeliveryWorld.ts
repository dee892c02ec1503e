/** A worker process between a database and brokers, and what each test of delivery wants of it. */
import { assert } from "@effect/vitest"
import { Context, Effect, Schedule } from "effect"
import { type LogLine, type Process, start } from "../e2e/Process.ts"
import * as Rooms from "../e2e/Rooms.ts"
import { onOutbox } from "./DeliveryRows.ts"
import type { Cluster } from "./support/Cluster.ts"

/** More of everything: `npm run test:kafka:long`. */
export const isLong = process.env.DELIVERY_TESTS === "long"

export type Client = "kafkajs" | "platformatic"

/** A node that tests share, with the topic on it. */
export class Kafka extends Context.Service<Kafka, Cluster>()("test/DeliveryKafka") {}

export const published = "messenger_outbox_published_total"

export const parked = "messenger_outbox_parked"

export const pending = "messenger_outbox_pending"

const workers = "datname = current_database() and application_name like 'conference-room-reaper%'"

// The mark of a published row waits here while the gate is closed.
const gate = [
  "create table public.test_mark_gate (closed boolean)",
  `create function public.test_mark_wait() returns trigger language plpgsql as $$ begin
     while exists (select from public.test_mark_gate) loop perform pg_sleep(0.01); end loop;
     return new;
   end $$`,
  `create trigger test_mark_wait before update of published_at on messenger.outbox_messages
     for each row execute function public.test_mark_wait()`
]

/** A migrated database with what a worker on it needs. */
export const world = Effect.fnUntraced(function* (brokers: ReadonlyArray<string>, client: Client = "kafkajs") {
  const rooms = yield* Rooms.fresh
  const env = { ...rooms.env, KAFKA_BROKERS: brokers.join(), KAFKA_CLIENT: client }
  const asks = (condition: string) =>
    rooms.until(
      condition,
      Effect.map(rooms.sql.unsafe(condition), ({ length }) => length > 0)
    )
  return {
    rooms,
    env,
    ...onOutbox(rooms.sql),
    worker: (more: Readonly<Record<string, string>> = {}) => start(["run", "--only", "outbox"], { ...env, ...more }),
    installGate: Effect.forEach(gate, rooms.run, { discard: true }),
    closeGate: rooms.run("insert into public.test_mark_gate values (true)"),
    openGate: rooms.run("delete from public.test_mark_gate"),
    /** The rows are acked, and their mark waits at the gate. */
    ackedNotMarked: asks(`select from pg_stat_activity where ${workers} and wait_event = 'PgSleep'`),
    /** A worker waits for rows that another one is about to mark. */
    markWaits: asks(`select from pg_stat_activity where ${workers} and wait_event_type = 'Lock'`),
    /** As after a crash of the database's host: what a dead worker has begun is undone. */
    forgetWorkers: rooms.run(`select pg_terminate_backend(pid, 5000) from pg_stat_activity where ${workers}`),
    delivering: asks(`select from pg_stat_activity where ${workers} and state = 'idle in transaction'`)
  }
})

const isCalm = ({ level }: LogLine) => level === "INFO" || level === "WARN"

/** The worker lives, and has said nothing but lines of its log, none of them an error. */
export const assertCalm = (worker: Process) =>
  Effect.gen(function* () {
    assert.strictEqual(
      worker.count((line) => !isCalm(line)),
      0,
      worker.output()
    )
    assert.strictEqual((yield* worker.get("/health/live")).status, 200)
  })

/** Gauges are looked at once a second. */
export const metricBecomes = (worker: Process, series: string, value: number) =>
  worker
    .metric(series)
    .pipe(
      Effect.repeat({ until: (seen) => seen === value, schedule: Schedule.spaced("50 millis") }),
      Effect.timeoutOrElse({ duration: "10 seconds", orElse: () => Effect.die(new Error(`${series} is not ${value}`)) })
    )

/** SIGTERM ends it with 0; gives the milliseconds that it took. */
export const stop = Effect.fnUntraced(function* (worker: Process) {
  const before = performance.now()
  yield* worker.kill("SIGTERM")
  const { code, signal } = yield* worker.ended
  assert.deepStrictEqual({ code, signal }, { code: 0, signal: null }, worker.output())
  return Math.round(performance.now() - before)
})

/** One line for the report: what was measured. */
export const note = (what: string, figures: Readonly<Record<string, unknown>>) =>
  Effect.sync(() => {
    const text = Object.entries(figures).map(([name, value]) => `${name} ${value}`)
    process.stdout.write(`delivery: ${what}: ${text.join(", ")}\n`)
  })
