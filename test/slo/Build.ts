/** A build of the program: the loop, and ports put in place of the in-memory ones. The real build replaces nothing. */
import { type Effect, Layer } from "effect"
import type * as Cycle from "../../src/program/Cycle.ts"
import * as Reaper from "../../src/program/Reaper.ts"
import type { Liveness } from "../../src/services/Liveness.ts"
import type { ReaperOptions } from "../../src/services/ReaperOptions.ts"
import type * as MemoryLayers from "../fakes/MemoryLayers.ts"

type Ports = Layer.Success<typeof MemoryLayers.layer> | ReaperOptions

export interface Build {
  readonly loop: Effect.Effect<unknown, never, Effect.Services<typeof Cycle.run> | Liveness>
  readonly ports: Layer.Layer<never, never, Ports>
}

export const real: Build = { loop: Reaper.run, ports: Layer.empty }
