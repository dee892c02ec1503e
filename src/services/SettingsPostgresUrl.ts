/**
 * The reader of PostgreSQL URLs. A special character that stands bare in a user name or password must not move a part of
 * them into the host, the path or the query, which are looked up and printed: such a URL is refused, never quoted (O).
 */
import { Option, Redacted, Result } from "effect"
import type { Reader } from "./SettingsVariable.ts"

const sslModes = ["disable", "prefer", "allow", "require", "verify-ca", "verify-full"]

const hint = "percent-encode special characters in a user name or password (# ? / @ : % as %23 %3F %2F %40 %3A %25)"

const decodes = (part: string): boolean => {
  try {
    decodeURIComponent(part)
    return true
  } catch {
    return false
  }
}

/** Asked of the text itself: what `URL` makes of it has lost the line breaks and shows a moved part as any other. */
const textProblem = (text: string): string | undefined => {
  if (/[\t\r\n]/.test(text.trim())) return `contains a tab or a line break; ${hint}`
  if (text.includes("#")) return `contains a #; ${hint}`
  // The @ that ends the credentials would come after the character that cut them off.
  if (/^[^:]*:\/\/[^/?]*[/?].*@/s.test(text)) return `has an @ after its host; ${hint}`
  return undefined
}

const isPort = (text: string): boolean => /^[0-9]{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535

const queryProblem = ({ search, searchParams }: URL): string | undefined => {
  // A bare & cuts a value short, a bare + would be read as a blank.
  if (/(^\?|&)[^=&]+(&|$)/.test(search)) return `has a query parameter without =; ${hint}`
  if (/(^\?|&)(user|password)=[^&]*\+/.test(search)) return "has a + in its user or password parameter; write it as %2B"
  if (searchParams.getAll("sslmode").some((mode) => !sslModes.includes(mode))) return "has an unknown sslmode"
  if (!searchParams.getAll("port").every(isPort)) return "has a wrong port parameter"
  if (searchParams.getAll("connect_timeout").some((seconds) => !/^[0-9]+$/.test(seconds))) {
    return "has a connect_timeout that is not a whole number of seconds"
  }
  return undefined
}

const urlProblem = (url: URL): string | undefined => {
  if (url.protocol !== "postgres:" && url.protocol !== "postgresql:") return "is not a postgres:// or postgresql:// URL"
  // Without the slashes the rest is an opaque path: "postgres:db" has no host and no database.
  if (!/^postgres(ql)?:\/\//i.test(url.href)) return "has no // after its scheme"
  if (url.hostname.includes(",")) return "names more than one host"
  if (url.port !== "" && !isPort(url.port)) return "has a wrong port"
  if (![url.hostname, url.username, url.password, url.pathname, url.search].every(decodes)) {
    return `has a broken percent-encoding; ${hint}`
  }
  return queryProblem(url)
}

const problem = (text: string): string | undefined => {
  const url = URL.parse(text)
  // A text that is no PostgreSQL URL at all is called that, whatever it contains.
  if (url !== null && !/^postgres(ql)?:$/.test(url.protocol)) return urlProblem(url)
  return textProblem(text) ?? (url === null ? `cannot be read as a URL; ${hint}` : urlProblem(url))
}

const databaseName = (url: URL): string => {
  const host = url.searchParams.get("host") ?? (url.hostname === "" ? "localhost" : url.hostname)
  const port = url.searchParams.get("port") ?? (url.port === "" ? "5432" : url.port)
  const database = url.searchParams.get("dbname") ?? decodeURIComponent(url.pathname.slice(1))
  return `${host}:${port}/${database}`
}

export const postgresUrl: Reader<Redacted.Redacted<string>> = {
  allowed: `a postgres:// or postgresql:// URL of one host, its sslmode one of ${sslModes.join(", ")}`,
  read: (text) => {
    const why = problem(text)
    return why === undefined ? Result.succeed(Redacted.make(text)) : Result.fail(why)
  },
  quote: () => undefined,
  show: (text) =>
    Option.match(Option.fromNullishOr(URL.parse(text)), { onNone: () => "<redacted>", onSome: databaseName })
}
