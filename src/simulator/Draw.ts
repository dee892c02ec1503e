/** Draws from a seeded source: the same source gives the same draws, so that a life can be told again from its seed. */
import type { Random } from "effect"

/** A number in [min, max). */
export const between = (source: Random.Random, min: number, max: number): number =>
  min + source.nextDoubleUnsafe() * (max - min)

/** A whole number from min to max, both included. */
export const wholeBetween = (source: Random.Random, min: number, max: number): number =>
  Math.floor(between(source, min, max + 1))

export const chance = (source: Random.Random, probability: number): boolean => source.nextDoubleUnsafe() < probability

/** One of the keys, each as often as its share says; the shares need not add up to one. */
export const byShare = <K extends string>(source: Random.Random, shares: Readonly<Record<K, number>>): K => {
  const entries = Object.entries(shares) as Array<[K, number]>
  const total = entries.reduce((sum, [, share]) => sum + share, 0)
  let left = between(source, 0, total)
  let drawn: K | undefined
  for (const [key, share] of entries) {
    drawn = key
    left -= share
    if (left < 0) break
  }
  return drawn as K
}
