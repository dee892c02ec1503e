/** Readers of addresses: URLs and broker lists. What they print leaves out credentials and query strings (O). */
import { Option, Redacted, Result } from "effect"
import type { Reader } from "./SettingsVariable.ts"

const parseUrl = (text: string): Option.Option<URL> => Option.fromNullishOr(URL.parse(text))

const withoutSecrets = (url: URL): string =>
  `${url.protocol}//${url.host}${url.pathname}${url.search === "" ? "" : "?<redacted>"}`

// A text that is no http(s) URL may well be a secret that was put into the wrong variable: it is not quoted.
const quoteUrl = (text: string): string | undefined =>
  Option.getOrUndefined(parseUrl(text).pipe(Option.filter(isHttp), Option.map(withoutSecrets)))

const isHttp = (url: URL): boolean => url.protocol === "http:" || url.protocol === "https:"

export const httpUrl: Reader<string> = {
  allowed: "an http:// or https:// URL without user name and password",
  read: (text) =>
    Option.match(parseUrl(text), {
      onNone: () => Result.fail("is not a URL"),
      onSome: (url) => {
        if (!isHttp(url)) return Result.fail("is not an http or https URL")
        if (url.username !== "" || url.password !== "") return Result.fail("contains a user name or password")
        return Result.succeed(text)
      }
    }),
  quote: quoteUrl,
  show: (text) => quoteUrl(text) ?? "<redacted>"
}

const sslModes = ["disable", "prefer", "allow", "require", "verify-ca", "verify-full"]

const decodes = (part: string): boolean => {
  try {
    decodeURIComponent(part)
    return true
  } catch {
    return false
  }
}

const postgresProblem = (url: URL): string | undefined => {
  if (url.protocol !== "postgres:" && url.protocol !== "postgresql:") return "is not a postgres:// or postgresql:// URL"
  // Without the slashes the rest is an opaque path: "postgres:db" has no host and no database.
  if (!/^postgres(ql)?:\/\//i.test(url.href)) return "has no // after its scheme"
  // A password with a bare "/" or "?" ends the host early, and the rest of it would be printed as the database's name.
  if (url.pathname.includes("@") || (url.username === "" && `${url.search}${url.hash}`.includes("@"))) {
    return "has an @ after its host; write / ? # @ in a user name or password as %2F %3F %23 %40"
  }
  if (url.hostname.includes(",")) return "names more than one host"
  if (![url.hostname, url.username, url.password, url.pathname].every(decodes)) return "has a broken percent-encoding"
  if (url.searchParams.getAll("sslmode").some((mode) => !sslModes.includes(mode))) return "has an unknown sslmode"
  if (url.searchParams.getAll("port").some((port) => !/^[0-9]{1,5}$/.test(port) || Number(port) > 65_535)) {
    return "has a wrong port parameter"
  }
  if (url.searchParams.getAll("connect_timeout").some((seconds) => !/^[0-9]+$/.test(seconds))) {
    return "has a connect_timeout that is not a whole number of seconds"
  }
  return undefined
}

const databaseName = (url: URL): string => {
  const host = url.searchParams.get("host") ?? (url.hostname === "" ? "localhost" : url.hostname)
  const port = url.searchParams.get("port") ?? (url.port === "" ? "5432" : url.port)
  const database = url.searchParams.get("dbname") ?? decodeURIComponent(url.pathname.slice(1))
  return `${host}:${port}/${database}`
}

export const postgresUrl: Reader<Redacted.Redacted<string>> = {
  allowed: `a postgres:// or postgresql:// URL of one host, its sslmode one of ${sslModes.join(", ")}`,
  read: (text) =>
    Option.match(parseUrl(text), {
      onNone: () => Result.fail("cannot be read as a URL"),
      onSome: (url) => {
        const problem = postgresProblem(url)
        return problem === undefined ? Result.succeed(Redacted.make(text)) : Result.fail(problem)
      }
    }),
  quote: () => undefined,
  show: (text) => Option.match(parseUrl(text), { onNone: () => "<redacted>", onSome: databaseName })
}

const brokerProblem = (broker: string): boolean => {
  const match = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})$/.exec(broker)
  return match === null || Number(match[1]) < 1 || Number(match[1]) > 65_535
}

const splitBrokers = (text: string): ReadonlyArray<string> => text.split(",").map((broker) => broker.trim())

const maskUsers = (text: string): string => text.replace(/[^,]*@/g, "<redacted>@")

export const brokerList: Reader<ReadonlyArray<string>> = {
  allowed: "host:port, several separated by commas, for example kafka-1:9092,kafka-2:9092",
  read: (text) => {
    const brokers = splitBrokers(text)
    return brokers.some(brokerProblem) ? Result.fail("has an entry that is not host:port") : Result.succeed(brokers)
  },
  quote: maskUsers,
  show: (text) => splitBrokers(text).join(",")
}
