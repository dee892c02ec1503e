import { Clock, Effect, Layer } from "effect"
import * as Instant from "../domain/Instant.ts"
import { CycleClock } from "../services/CycleClock.ts"

/** Effect's Clock: the system's time in production, the test's time in tests (L6). */
export const layer = Layer.succeed(
  CycleClock,
  CycleClock.of({ asOf: Effect.map(Clock.currentTimeMillis, Instant.fromMillis) })
)
