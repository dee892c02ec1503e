/**
 * Variables that look like a slip and yet are no reason to refuse the start: kubernetes itself puts names such as
 * `REAPER_PORT` into the environment of a pod.
 */
import { names } from "./SettingsTable.ts"
import * as Telemetry from "./SettingsTelemetry.ts"

type Environment = Readonly<Record<string, string | undefined>>

/** Levenshtein's distance: insertions, deletions and replacements from `a` to `b`. */
const distance = (a: string, b: string): number => {
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(replaced, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    previous = row
  }
  return previous[b.length] ?? 0
}

const nearest = (name: string): string =>
  names.reduce<string>((best, known) => (distance(name, known) < distance(name, best) ? known : best), names[0] ?? "")

const orphanSecret = (env: Environment, secret: string, url: string): ReadonlyArray<string> =>
  env[secret] && !env[url] ? [`${secret} has no effect: ${url} is not set`] : []

export const warnings = (env: Environment): ReadonlyArray<string> => [
  ...Object.keys(env)
    .filter((name) => name.startsWith("REAPER_") && !(names as ReadonlyArray<string>).includes(name))
    .sort()
    .map((name) => `${name} is not known and has no effect; the nearest known name is ${nearest(name)}`),
  ...orphanSecret(env, "RECORDER_SECRET", "RECORDER_URL"),
  ...orphanSecret(env, "REALTIME_HUB_SECRET", "REALTIME_HUB_URL"),
  ...Telemetry.warnings(env)
]
