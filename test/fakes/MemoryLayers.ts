/** Every port on one in-memory database, with the handles by which a test seeds, inspects and disturbs it. */
import { Layer } from "effect"
import * as SystemCycleClock from "../../src/layers/SystemCycleClock.ts"
import * as MemoryConferenceRepository from "./MemoryConferenceRepository.ts"
import * as MemoryDatabase from "./MemoryDatabase.ts"
import * as MemoryHarness from "./MemoryHarness.ts"
import * as MemoryIntegrationOutbox from "./MemoryIntegrationOutbox.ts"
import * as MemoryRealtimeOutbox from "./MemoryRealtimeOutbox.ts"
import * as MemoryReaperJournal from "./MemoryReaperJournal.ts"
import * as MemoryRecorder from "./MemoryRecorder.ts"
import * as MemoryRunLock from "./MemoryRunLock.ts"
import * as MemoryStore from "./MemoryStore.ts"
import * as MemoryTransaction from "./MemoryTransaction.ts"

/** A new database each time it is built; time is the Clock's, so the TestClock's under `it.effect`. */
export const layer = MemoryHarness.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      MemoryTransaction.layer,
      MemoryConferenceRepository.layer,
      MemoryIntegrationOutbox.layer(),
      MemoryRealtimeOutbox.layer,
      MemoryReaperJournal.layer,
      MemoryStore.layer,
      MemoryRunLock.layer
    )
  ),
  Layer.provideMerge(Layer.mergeAll(MemoryDatabase.layer, MemoryRecorder.layer, SystemCycleClock.layer))
)
