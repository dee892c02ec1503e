/** Rules that bind two or more variables (O). A rule is asked only when each value it needs was readable. */
import { Duration, Option } from "effect"
import * as DurationText from "../domain/DurationText.ts"
import type { Name, Values } from "./SettingsTable.ts"

export interface Finding {
  readonly name: Name
  readonly problem: string
  /** Said instead of what the variable alone allows. */
  readonly allowed: string
}

interface Input {
  /** What could be read, defaults included. */
  readonly values: Partial<Values>
  readonly isSet: (name: Name) => boolean
  readonly isProduction: boolean
}

type DurationName = {
  [K in Name]: Values[K] extends Duration.Duration ? K : never
}[Name]

const shorterThan = ({ values, isSet }: Input, short: DurationName, long: DurationName): ReadonlyArray<Finding> => {
  const shortValue = values[short]
  const longValue = values[long]
  if (shortValue === undefined || longValue === undefined) return []
  if (Duration.isLessThan(shortValue, longValue)) return []
  // The one to blame is the one that somebody wrote.
  return isSet(short)
    ? [
        {
          name: short,
          problem: `is not shorter than ${long} (${DurationText.format(longValue)})`,
          allowed: `less than ${long}`
        }
      ]
    : [
        {
          name: long,
          problem: `is not longer than ${short} (${DurationText.format(shortValue)})`,
          allowed: `more than ${short}`
        }
      ]
}

const needs = ({ isSet }: Input, name: Name, others: ReadonlyArray<Name>, why: string): ReadonlyArray<Finding> =>
  isSet(name)
    ? others
        .filter((other) => !isSet(other))
        .map((other) => ({ name: other, problem: `is not set, but ${name} is`, allowed: why }))
    : []

const databaseInProduction = ({ isSet, isProduction }: Input): ReadonlyArray<Finding> =>
  isProduction && !isSet("DATABASE_URL")
    ? [
        {
          name: "DATABASE_URL",
          problem: "is not set, but NODE_ENV is production",
          allowed: "the URL of a PostgreSQL server; the embedded one is for development"
        }
      ]
    : []

const kafkaFiles = ["KAFKA_SSL_CA", "KAFKA_SSL_CERT", "KAFKA_SSL_KEY"] as const
const kafkaLogin = ["KAFKA_SASL_MECHANISM", "KAFKA_SASL_USERNAME", "KAFKA_SASL_PASSWORD"] as const

const kafkaSsl = ({ values, isSet }: Input): ReadonlyArray<Finding> => {
  const file = kafkaFiles.find(isSet)
  const isOff = values.KAFKA_SSL !== undefined && Option.contains(values.KAFKA_SSL, false)
  return file !== undefined && isOff
    ? [{ name: "KAFKA_SSL", problem: `is off, but ${file} is set`, allowed: "true, or no KAFKA_SSL_* file" }]
    : []
}

const kafka = (input: Input): ReadonlyArray<Finding> => {
  const first = kafkaLogin.find(input.isSet)
  return [
    ...kafkaSsl(input),
    ...needs(input, "KAFKA_SSL_CERT", ["KAFKA_SSL_KEY"], "certificate and key together"),
    ...needs(input, "KAFKA_SSL_KEY", ["KAFKA_SSL_CERT"], "certificate and key together"),
    ...(first === undefined ? [] : needs(input, first, kafkaLogin, "mechanism, user name and password together"))
  ]
}

export const findings = (input: Input): ReadonlyArray<Finding> => [
  ...databaseInProduction(input),
  ...needs(input, "DATABASE_LISTEN_URL", ["DATABASE_URL"], "the database that DATABASE_LISTEN_URL leads to"),
  ...shorterThan(input, "REAPER_EMPTY_ROOM_GRACE", "REAPER_STALE_LIVE_TIMEOUT"),
  ...shorterThan(input, "REAPER_MAX_RUN_DURATION", "REAPER_LOCK_TTL"),
  ...kafka(input),
  ...needs(input, "RECORDER_URL", ["RECORDER_SECRET"], "the key that signs the stop signal"),
  ...needs(input, "REALTIME_HUB_URL", ["REALTIME_HUB_SECRET"], "the key that signs a push")
]
