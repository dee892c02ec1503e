/** Times of repeated runs, and how two of them compare: only ratios within one run mean anything on a shared machine. */
import { Clock, Effect } from "effect"

export interface Figures {
  readonly label: string
  readonly samples: ReadonlyArray<number>
}

/** Milliseconds that an effect takes. */
export const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const start = yield* Clock.monotonicTimeNanos
    yield* effect
    return Number((yield* Clock.monotonicTimeNanos) - start) / 1e6
  })

const sorted = ({ samples }: Figures) => samples.toSorted((a, b) => a - b)

const median = (figures: Figures): number => {
  const ordered = sorted(figures)
  return ordered[ordered.length >> 1] ?? Number.NaN
}

export const line = (figures: Figures, per = 1): string => {
  const ordered = sorted(figures)
  const show = (value: number | undefined) => ((value ?? Number.NaN) / per).toFixed(per === 1 ? 1 : 3).padStart(9)
  return `${figures.label.padEnd(52)}${show(ordered[0])}${show(median(figures))}${show(ordered.at(-1))}   n=${ordered.length}`
}

export const ratio = (a: Figures, b: Figures): string =>
  `${`${a.label} / ${b.label}`.padEnd(84)} x ${(median(a) / median(b)).toFixed(2)}`

/** Runs every contender once per round, so that a slow moment of the machine meets all of them. */
export const rounds = <E, R>(
  count: number,
  contenders: Readonly<Record<string, Effect.Effect<number, E, R>>>
): Effect.Effect<ReadonlyArray<Figures>, E, R> =>
  Effect.gen(function* () {
    const samples = new Map(Object.keys(contenders).map((label) => [label, [] as Array<number>]))
    for (let round = 0; round < count; round++) {
      for (const [label, contender] of Object.entries(contenders)) samples.get(label)?.push(yield* contender)
    }
    return [...samples].map(([label, samples]) => ({ label, samples }))
  })
