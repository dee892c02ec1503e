/** Readers of addresses: hosts, URLs and broker lists. What they print leaves out credentials and query strings (O). */
import { isIP } from "node:net"
import { Option, Result } from "effect"
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

// A last label of digits alone would be read as an IPv4 address: "1234" is 0.0.4.210.
const hostName = /^(?=.{1,253}$)(?:(?!-)[A-Za-z0-9_-]{1,63}(?<!-)\.)*(?!-)(?![0-9]+\.?$)[A-Za-z0-9_-]{1,63}(?<!-)\.?$/

export const host: Reader<string> = {
  allowed: "a host name or an IP address",
  read: (text) =>
    isIP(text) !== 0 || hostName.test(text)
      ? Result.succeed(text)
      : Result.fail("is neither a host name nor an IP address (IPv6 is written without brackets)"),
  quote: (text) => text,
  show: (text) => text
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
