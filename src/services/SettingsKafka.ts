/** How the brokers are reached, from the `KAFKA_*` variables; none without brokers. */
import { Option, type Redacted } from "effect"
import type { Values } from "./SettingsTable.ts"

export interface KafkaSettings {
  readonly brokers: ReadonlyArray<string>
  readonly client: Values["KAFKA_CLIENT"]
  /** Paths of PEM files; none: no TLS. */
  readonly ssl: Option.Option<Readonly<Record<"ca" | "cert" | "key", Option.Option<string>>>>
  readonly sasl: Option.Option<{
    readonly mechanism: "plain" | "scram-sha-256" | "scram-sha-512"
    readonly username: string
    readonly password: Redacted.Redacted<string>
  }>
}

export const fromValues = (values: Values): Option.Option<KafkaSettings> => {
  const files = { ca: values.KAFKA_SSL_CA, cert: values.KAFKA_SSL_CERT, key: values.KAFKA_SSL_KEY }
  // A file given means TLS is meant: the password must not go out in clear because a switch was left out.
  const hasFile = Object.values(files).some(Option.isSome)
  return Option.map(values.KAFKA_BROKERS, (brokers) => ({
    brokers,
    client: values.KAFKA_CLIENT,
    ssl: Option.getOrElse(values.KAFKA_SSL, () => hasFile) ? Option.some(files) : Option.none(),
    sasl: Option.all({
      mechanism: values.KAFKA_SASL_MECHANISM,
      username: values.KAFKA_SASL_USERNAME,
      password: values.KAFKA_SASL_PASSWORD
    })
  }))
}
