/** The summary of a simulation on standard output. */
import type { Summary } from "../../simulator/Simulate.ts"

const lines = ({ rooms, tally, audit }: Summary): ReadonlyArray<readonly [string, string | number]> => [
  ["rooms begun", tally.started],
  ["ended by the messenger", rooms.endedByMessenger],
  ["closed by the worker", rooms.closedByWorker],
  ["still open", rooms.open],
  ["lives disturbed by failed commands", tally.disturbed],
  ["closed while alive", tally.closedAlive.length],
  ["whole database: rooms", audit.figures.rooms],
  [
    "  EmptyTimeout / Timeout / Failed",
    `${audit.figures.emptyTimeout} / ${audit.figures.timeout} / ${audit.figures.provisionFailed}`
  ],
  [
    "  outbox / realtime / closing rows",
    `${audit.figures.outbox} / ${audit.figures.realtime} / ${audit.figures.closings}`
  ],
  ["  audit breaches", audit.breachCount]
]

/** Text for people, or the whole summary as one line of JSON. */
export const report = (summary: Summary, json: boolean): string => {
  if (json) return JSON.stringify(summary)
  const table = lines(summary).map(([name, value]) => `${name.padEnd(36)} ${value}`)
  return [...table, ...summary.audit.breaches.map((breach) => `breach: ${breach}`)].join("\n")
}
