/**
 * The run locks of the two dispatchers: of all instances that share the database one delivers at a time, since two would
 * overtake each other within a key (X1, X2). Apart from the reaper's, so that neither waits for the other.
 */
import { Context } from "effect"
import type { RunLock } from "./RunLock.ts"

export type DispatcherLock = RunLock["Service"]

export class OutboxLock extends Context.Service<OutboxLock, DispatcherLock>()("conference-room-reaper/OutboxLock") {}

export class RealtimeLock extends Context.Service<RealtimeLock, DispatcherLock>()(
  "conference-room-reaper/RealtimeLock"
) {}
