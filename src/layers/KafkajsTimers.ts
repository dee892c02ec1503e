/**
 * Takes a timer out of kafkajs 2.2.4 that every connection re-arms each millisecond for as long as it lives, at 2 % of a
 * core, and whose negative delay makes Node 24 print a warning (tulios/kafkajs 1751). It is there for requests that wait
 * behind a throttle: without such a request there is nothing to wait for.
 */
import { createRequire } from "node:module"

interface RequestQueue {
  readonly pending: ReadonlyArray<unknown>
  scheduleCheckPendingRequests: () => void
}

const { prototype } = createRequire(import.meta.url)("kafkajs/src/network/requestQueue/index.js") as {
  readonly prototype: RequestQueue
}
const schedule = prototype.scheduleCheckPendingRequests

prototype.scheduleCheckPendingRequests = function () {
  if (this.pending.length > 0) schedule.call(this)
}
