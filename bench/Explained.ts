/**
 * Reads the plans that `auto_explain` has written to the server's log, and tells the worker's statements apart. So they are
 * the statements that the program really sends, with its own parameters and its own prepared statements.
 */

export interface Explained {
  readonly name: string
  readonly milliseconds: number
  /** 8 kB pages touched, in memory or not. */
  readonly pages: number
  /** How `conference_sessions` is reached. */
  readonly access: ReadonlyArray<string>
  readonly plan: string
}

/** Settings of a database whose sessions write every plan to the log; they need a superuser. */
export const settings: Readonly<Record<string, string>> = {
  session_preload_libraries: "auto_explain",
  "auto_explain.log_min_duration": "0",
  "auto_explain.log_analyze": "on",
  "auto_explain.log_buffers": "on",
  "auto_explain.log_parameter_max_length": "0"
}

const phaseOf = (query: string): string => {
  if (query.includes("s.status = 'Provisioning'")) return "provision-timeout"
  return query.includes("s.active_participant_count = 0") ? "empty-room" : "stale-live"
}

const statements: ReadonlyArray<readonly [pattern: RegExp, name: (query: string) => string]> = [
  [/0 as "poisonAttempts"/, (query) => `claim ${phaseOf(query)}`],
  [/p\.attempts as "poisonAttempts"/, (query) => `claim poison ${phaseOf(query)}`],
  [/^update messenger\.conference_sessions/, (query) => `guarded update ${phaseOf(query)}`],
  [/count\(\*\)::int as n/, (query) => `skip count ${phaseOf(query)}`],
  [/'participants'/, () => "details"],
  [/^delete from messenger\.conference_reaper_poison where/, () => "forget poison of closed rooms"],
  [/^insert into messenger\.conference_reaper_poison/, () => "record poison"],
  [/as overdue/, () => "backlog"],
  [/^delete from messenger\.conference_reaper_closings/, () => "prune closings"],
  [/^delete from messenger\.conference_reaper_runs/, () => "prune runs"],
  [/^delete from messenger\.conference_reaper_poison p/, () => "prune poison"]
]

const planStart = /^(?:Limit|LockRows|Update|Delete|Insert|Aggregate|Result|Function Scan|.*\(cost=)/

const read = (entry: string): Explained | undefined => {
  const duration = /duration: ([\d.]+) ms\s+plan:/.exec(entry)
  const lines = entry.split("\n").slice(1)
  const start = lines.findIndex((line) => planStart.test(line.trim()) && line.includes("(cost="))
  if (duration === null || start < 0) return undefined
  const query = lines
    .slice(0, start)
    .join("\n")
    .replace(/^\s*Query Text: /, "")
    .trim()
  const [, name] = statements.find(([pattern]) => pattern.test(query)) ?? []
  if (name === undefined) return undefined
  const plan = lines.slice(start).flatMap((line) => (line.includes("Index Searches: ") ? [] : line.replace(/^\t/, "")))
  const buffers = plan.find((line) => line.includes("Buffers: shared")) ?? ""
  const count = (kind: string) => Number(new RegExp(`${kind}=(\\d+)`).exec(buffers)?.[1] ?? 0)
  const access = plan.flatMap(
    (line) => /(?:Index (?:Only )?Scan using \w+|Seq Scan|Bitmap Index Scan) on \w+/.exec(line) ?? []
  )
  return {
    name: name(query),
    milliseconds: Number(duration[1]),
    pages: count("hit") + count("read"),
    access: [...new Set(access.filter((scan) => /conference_sessions|ix_conf_/.test(scan)))],
    // Arrays of ids are long and say nothing.
    plan: plan
      .join("\n")
      .replaceAll(/'\{[^{}']{80,}\}'/g, "'{…}'")
      .trimEnd()
  }
}

/** The plans in a piece of the server's log, in order. */
export const parse = (log: string): ReadonlyArray<Explained> =>
  log.split(/^(?=\d{4}-\d\d-\d\d .*\[\d+\] )/m).flatMap((entry) => read(entry) ?? [])
