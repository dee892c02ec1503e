/**
 * Builds with a fault of their own, made from the real one by a port that lies or a loop that ticks differently. Each
 * names the clause that it breaks: a statement that lets one of them pass proves nothing.
 */
import { Clock, Duration, Effect, Layer, Option } from "effect"
import * as Instant from "../../src/domain/Instant.ts"
import type { PhaseName } from "../../src/domain/Phase.ts"
import { ConferenceRepository, type Scan } from "../../src/services/ConferenceRepository.ts"
import { CycleClock } from "../../src/services/CycleClock.ts"
import { IntegrationOutbox } from "../../src/services/IntegrationOutbox.ts"
import { RealtimeOutbox } from "../../src/services/RealtimeOutbox.ts"
import { ReaperJournal } from "../../src/services/ReaperJournal.ts"
import { type Options, ReaperOptions } from "../../src/services/ReaperOptions.ts"
import { RunLock } from "../../src/services/RunLock.ts"
import { Store } from "../../src/services/Store.ts"
import { unavailable } from "../fakes/Faults.ts"
import { type Build, real } from "./Build.ts"
import type { Clause } from "./Clause.ts"
import { loops } from "./MutantLoops.ts"
import { prunesRooms, writesBlindly } from "./MutantRows.ts"

export interface Mutant {
  readonly name: string
  readonly build: Build
  readonly breaks: Clause
  /** Whether S1 and S2 by the rows alone see it too, with no trouble at all. */
  readonly breaksPlain?: true
}

type Repository = ConferenceRepository["Service"]
type Claim = Repository["claim"]

const withPorts = (ports: Build["ports"]): Build => ({ ...real, ports })

const withRepository = (change: (repository: Repository, options: Options) => Partial<Repository>): Build =>
  withPorts(
    Layer.effect(
      ConferenceRepository,
      Effect.gen(function* () {
        const repository = yield* ConferenceRepository
        return { ...repository, ...change(repository, yield* ReaperOptions) }
      })
    )
  )

const withCutoff = (move: (cutoff: Instant.Instant, options: Options) => Instant.Instant): Build =>
  withRepository(({ claim }, options) => ({
    claim: (scan, limit, tried) => claim({ ...scan, cutoff: move(scan.cutoff, options) }, limit, tried)
  }))

const withClaim = (change: (claim: Claim, scan: Scan) => Claim): Build =>
  withRepository(({ claim }) => ({ claim: (scan, limit, tried) => change(claim, scan)(scan, limit, tried) }))

const withOptions = (change: (options: Options) => Partial<Options>): Build =>
  withPorts(
    Layer.effect(
      ReaperOptions,
      Effect.map(ReaperOptions, (options) => ({ ...options, ...change(options) }))
    )
  )

const microseconds = (micros: bigint) => (cutoff: Instant.Instant) => Instant.Instant.make(cutoff + micros)
const short = (duration: Duration.Duration) => Duration.subtract(duration, Duration.millis(1))
const never = () => Effect.succeed([])

const late: ReadonlyArray<Mutant> = [
  {
    name: "closes one tick late",
    build: withCutoff((cutoff, { pollingInterval }) => Instant.minus(cutoff, pollingInterval)),
    breaks: "on-time",
    breaksPlain: true
  },
  { name: "compares with < instead of <=", build: withCutoff(microseconds(-1n)), breaks: "on-time" },
  {
    name: "works with the AsOf of the tick before",
    build: withPorts(
      Layer.effect(
        CycleClock,
        Effect.gen(function* () {
          const { asOf } = yield* CycleClock
          const { pollingInterval } = yield* ReaperOptions
          return { asOf: Effect.map(asOf, (now) => Instant.minus(now, pollingInterval)) }
        })
      )
    ),
    breaks: "on-time"
  },
  {
    name: "sees the rooms of half the tenants",
    build: withClaim(
      (claim) => (scan, limit, tried) =>
        Effect.map(claim(scan, limit, tried), (rows) =>
          rows.filter(({ session }) => session._tag === "Success" && /[02468ace]$/.test(session.success.tenantId))
        )
    ),
    breaks: "on-time",
    breaksPlain: true
  },
  {
    name: "closes one room fewer than the batch has room for",
    build: withClaim((claim) => (scan, limit, tried) => claim(scan, limit - 1, tried)),
    breaks: "on-time"
  },
  ...(["empty-room", "provision-timeout", "stale-live"] satisfies ReadonlyArray<PhaseName>).map(
    (name): Mutant => ({
      name: `skips the phase ${name}`,
      build: withClaim((claim, scan) => (scan.phase.name === name ? never : claim)),
      breaks: "every-phase-has-its-turn",
      breaksPlain: true
    })
  )
]

const early: ReadonlyArray<Mutant> = [
  {
    name: "has a grace that is a millisecond short",
    build: withOptions(({ emptyRoomGrace }) => ({ emptyRoomGrace: short(emptyRoomGrace) })),
    breaks: "no-live-room",
    breaksPlain: true
  },
  {
    name: "has a provision timeout that is a millisecond short",
    build: withOptions(({ provisionTimeout }) => ({ provisionTimeout: short(provisionTimeout) })),
    breaks: "no-live-room",
    breaksPlain: true
  },
  {
    name: "has a stale timeout that is a millisecond short",
    build: withOptions(({ staleLiveTimeout }) => ({ staleLiveTimeout: short(staleLiveTimeout) })),
    breaks: "no-live-room",
    breaksPlain: true
  },
  {
    name: "claims without locks and writes without looking again",
    build: withPorts(writesBlindly),
    breaks: "no-live-room"
  },
  { name: "claims rooms a microsecond too young", build: withCutoff(microseconds(1n)), breaks: "nothing-refused" },
  {
    name: "takes the newest first",
    build: withClaim(
      (claim) => (scan, limit, tried) =>
        Effect.map(claim(scan, 10_000, tried), (rows) => rows.toReversed().slice(0, limit))
    ),
    breaks: "oldest-first"
  },
  {
    name: "closes one room more than BatchSize",
    build: withClaim((claim) => (scan, limit, tried) => claim(scan, limit + 1, tried)),
    breaks: "oldest-first"
  }
]

const lockAndTime: ReadonlyArray<Mutant> = [
  {
    name: "never gets the lock",
    build: withPorts(Layer.succeed(RunLock, { tryAcquire: Effect.succeedNone })),
    breaks: "every-phase-has-its-turn",
    breaksPlain: true
  },
  {
    name: "works although the lock is busy",
    build: withPorts(
      Layer.effect(
        RunLock,
        Effect.map(RunLock, ({ tryAcquire }) => ({
          tryAcquire: Effect.gen(function* () {
            const lock = yield* tryAcquire
            const databaseTime = Instant.fromMillis(yield* Clock.currentTimeMillis)
            return Option.orElseSome(lock, () => ({ databaseTime, confirm: Effect.void }))
          })
        }))
      )
    ),
    breaks: "busy-is-idle"
  },
  {
    name: "drops the other phases when one has failed",
    build: withPorts(Layer.succeed(Store, { ping: Effect.fail(unavailable("ping")) })),
    breaks: "every-phase-has-its-turn"
  },
  {
    name: "knows no MaxRunDuration",
    build: withOptions(() => ({ maxRunDuration: Duration.hours(1) })),
    breaks: "max-run"
  }
]

const wrongRows: ReadonlyArray<Mutant> = [
  {
    name: "writes another moment than AsOf",
    build: withRepository(({ apply }) => ({
      apply: (scan, events) => apply({ ...scan, asOf: Instant.plus(scan.asOf, Duration.millis(1)) }, events)
    })),
    breaks: "written-as-of"
  },
  {
    name: "shows no backlog, whatever there is",
    build: withRepository(() => ({ backlog: () => Effect.succeed({ overdue: 0, poison: 0 }) })),
    breaks: "backlog"
  },
  { name: "removes closed rooms with old evidence", build: withPorts(prunesRooms), breaks: "untouched" },
  {
    name: "closes without the integration event",
    build: withPorts(
      Layer.effect(
        IntegrationOutbox,
        Effect.map(IntegrationOutbox, (outbox) => ({ ...outbox, append: () => Effect.void }))
      )
    ),
    breaks: "one-event"
  },
  {
    name: "closes without the push",
    build: withPorts(
      Layer.effect(
        RealtimeOutbox,
        Effect.map(RealtimeOutbox, (outbox) => ({ ...outbox, append: () => Effect.void }))
      )
    ),
    breaks: "one-event"
  },
  {
    name: "closes without evidence",
    build: withPorts(
      Layer.effect(
        ReaperJournal,
        Effect.map(ReaperJournal, (journal) => ({ ...journal, appendClosings: () => Effect.void }))
      )
    ),
    breaks: "one-event"
  }
]

const ticking: ReadonlyArray<Mutant> = Object.entries(loops).map(([name, { loop, ...rest }]) => ({
  name,
  build: { ...real, loop },
  ...rest
}))

export const mutants: ReadonlyArray<Mutant> = [...late, ...early, ...lockAndTime, ...wrongRows, ...ticking]
