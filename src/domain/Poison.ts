/** When a poison session is tried again (T5). */
import { Duration } from "effect"
import type { ConferenceId } from "./ConferenceSession.ts"
import type { Instant } from "./Instant.ts"

/** One refusal of one session in one phase; a row of `messenger.conference_reaper_poison`. */
export interface Refusal {
  readonly conferenceId: ConferenceId
  /** Refusals so far, this one included. */
  readonly attempts: number
  /** What the guard or the database said. */
  readonly lastError: string
  readonly nextAttemptAt: Instant
}

// Tried in the cycle that finds it and on each of the next three.
const attemptsEachCycle = 3
const longestPause = Duration.minutes(15)

/** The pause after refusal number `attempts`: none for the next three cycles, then two intervals, doubling up to 15 min. */
export const pauseAfter = (attempts: number, pollingInterval: Duration.Duration): Duration.Duration =>
  attempts <= attemptsEachCycle
    ? Duration.zero
    : Duration.min(Duration.times(pollingInterval, 2 ** Math.min(attempts - attemptsEachCycle, 20)), longestPause)
