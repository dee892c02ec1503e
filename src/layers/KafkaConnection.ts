/**
 * How both clients reach the brokers. The files of TLS are read for each new connection, so that a renewed certificate is
 * taken up, and one that cannot be read stops publishing alone. No message holds a secret.
 */
import { readFile } from "node:fs/promises"
import { createSecureContext, type SecureContextOptions } from "node:tls"
import { Effect, Option, Redacted } from "effect"
import type { KafkaSettings } from "../services/SettingsKafka.ts"
import { KafkaFailure, KafkaMisconfigured } from "./KafkaErrors.ts"

export const clientId = "conference-room-reaper"

/** In milliseconds. The broker's wait for its replicas ends before ours, so that it is the broker who tells. */
export const request = { timeout: 6_000, acksTimeout: 5_000, retries: 2, metadataMaxAge: 60_000 } as const

export const connectTimeout = (kafka: KafkaSettings): number => (Option.isSome(kafka.ssl) ? 5_000 : 3_000)

export interface Reach {
  /** Undefined: no TLS. */
  readonly tls: SecureContextOptions | undefined
  readonly sasl: { readonly mechanism: Mechanism; readonly username: string; readonly password: string } | undefined
}

type Mechanism = Option.Option.Value<KafkaSettings["sasl"]>["mechanism"]

const misconfigured = (reason: string) => new KafkaFailure({ cause: new KafkaMisconfigured({ reason }) })

const codeOf = (cause: unknown) =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : "unreadable"

const read = (name: string, path: Option.Option<string>) =>
  Option.match(path, {
    onNone: () => Effect.succeed({}),
    onSome: (file) =>
      Effect.tryPromise({
        try: async () => ({ [name]: await readFile(file) }),
        catch: (cause) => misconfigured(`cannot read KAFKA_SSL_${name.toUpperCase()} ${file} (${codeOf(cause)})`)
      })
  })

const readTls = (files: Option.Option.Value<KafkaSettings["ssl"]>) =>
  Effect.gen(function* () {
    const read_ = yield* Effect.all([read("ca", files.ca), read("cert", files.cert), read("key", files.key)])
    const options: SecureContextOptions = Object.assign({}, ...read_)
    // A client would take what is no certificate for an outage.
    yield* Effect.try({
      try: () => createSecureContext(options),
      catch: (cause) => misconfigured(`the KAFKA_SSL_* files do not make a TLS context (${codeOf(cause)})`)
    })
    return options
  })

export const reach = (kafka: KafkaSettings): Effect.Effect<Reach, KafkaFailure> =>
  Effect.map(
    Option.match(kafka.ssl, { onNone: () => Effect.undefined, onSome: readTls }),
    (tls): Reach => ({
      tls,
      sasl: Option.getOrUndefined(
        Option.map(kafka.sasl, (sasl) => ({ ...sasl, password: Redacted.value(sasl.password) }))
      )
    })
  )
