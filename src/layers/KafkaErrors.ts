/**
 * What an error of a Kafka client means for the rows of a send (X1), for both clients. Judged by the innermost causes
 * alone: the outer errors of retries call every outage final. Whatever is unknown counts as an outage, so that no row is
 * marked for a fault that is not its own; an error of our own code is none of them, but a defect.
 */
import { Effect, Schema } from "effect"
import type { PublishResult } from "../services/EventPublisher.ts"

/** A call of a client that failed, with the client's own error. */
export class KafkaFailure extends Schema.TaggedError<KafkaFailure>()("KafkaFailure", { cause: Schema.Unknown }) {}

/** Settings that no client can work with, such as a file that is not there. */
export class KafkaMisconfigured extends Schema.TaggedError<KafkaMisconfigured>()("KafkaMisconfigured", {
  reason: Schema.String
}) {
  override get message(): string {
    return this.reason
  }
}

export const attempt = <A>(call: () => Promise<A>): Effect.Effect<A, KafkaFailure> =>
  Effect.tryPromise({ try: call, catch: (cause) => new KafkaFailure({ cause }) })

export interface Refusal extends PublishResult {
  readonly outcome: Exclude<PublishResult["outcome"], "acked">
}

/** The protocol's error codes that a caller asks about. */
export const code = {
  unknownTopic: 3,
  topicAuthorization: 29,
  clusterAuthorization: 31,
  topicExists: 36,
  invalidReplication: 38
} as const

// MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP, POLICY_VIOLATION, INVALID_RECORD
const ofContent: ReadonlySet<number> = new Set([10, 18, 32, 44, 87])
// INVALID_TOPIC, INVALID_REQUIRED_ACKS, authorization (29, 31, 53), SASL (33, 34, 58), UNSUPPORTED_VERSION and _COMPRESSION
const ofSettings: ReadonlySet<number> = new Set([17, 21, 29, 31, 33, 34, 35, 53, 58, 76])

export const outcomeOfCode = (code: number): Refusal["outcome"] => {
  if (ofContent.has(code)) return "rejected"
  return ofSettings.has(code) ? "misconfigured" : "unavailable"
}

// Classes of kafkajs by name, and of @platformatic/kafka by code.
const settingsErrors: ReadonlySet<unknown> = new Set([
  "KafkaJSSASLAuthenticationError",
  "KafkaJSServerDoesNotSupportApiKey",
  "KafkaJSNotImplemented",
  "PLT_KFK_AUTHENTICATION",
  "PLT_KFK_UNSUPPORTED",
  "PLT_KFK_UNSUPPORTED_API",
  "PLT_KFK_UNSUPPORTED_COMPRESSION",
  "PLT_KFK_UNSUPPORTED_FORMAT"
])

// What both clients say of themselves, loosely: every field may be missing.
interface Told {
  readonly name?: unknown
  readonly message?: unknown
  readonly cause?: unknown
  readonly errors?: unknown
  readonly code?: unknown
  readonly type?: unknown
  readonly apiCode?: unknown
  readonly apiId?: unknown
}

const told = (error: unknown): Told => (typeof error === "object" && error !== null ? error : { message: error })

const innermost = (error: unknown): ReadonlyArray<unknown> => {
  const { cause, errors } = told(error)
  if (Array.isArray(errors) && errors.length > 0) return errors.flatMap(innermost)
  return cause instanceof Error ? innermost(cause) : [error]
}

const codeOf = (error: unknown): number | undefined => {
  const { apiCode, code, message } = told(error)
  if (typeof apiCode === "number") return apiCode
  // The number is lost on the way out of a metadata request of @platformatic/kafka.
  if (code === "PLT_KFK_USER" && /^Unknown topic /.test(String(message))) return 3
  return typeof code === "number" ? code : undefined
}

const isDefect = (error: unknown): boolean =>
  error instanceof TypeError ||
  error instanceof RangeError ||
  error instanceof ReferenceError ||
  error instanceof SyntaxError

// It quotes the whole message, which is no business of a log.
const isWithoutValue = (error: unknown): boolean => /^Invalid message without value/.test(String(told(error).message))

const outcomeOf = (error: unknown): Refusal["outcome"] => {
  const { code, message, name } = told(error)
  const number = codeOf(error)
  if (number !== undefined) return outcomeOfCode(number)
  if (isWithoutValue(error)) return "rejected"
  if (error instanceof KafkaMisconfigured || settingsErrors.has(name) || settingsErrors.has(code)) {
    return "misconfigured"
  }
  return code === "PLT_KFK_USER" && /TLS/.test(String(message)) ? "misconfigured" : "unavailable"
}

const longest = 300
const unserved: ReadonlySet<unknown> = new Set(["KafkaJSServerDoesNotSupportApiKey", "PLT_KFK_UNSUPPORTED_API"])

const reasonOf = (error: unknown): string => {
  if (isWithoutValue(error)) return "a message without a value"
  const { apiId, code, message, name, type } = told(error)
  const label = [apiId, type, code, name].find((each) => typeof each === "string" && each !== "Error")
  const text = String(message).replaceAll(/\s+/g, " ").trim()
  const reason = [label, text].filter((each) => each !== undefined && each !== "").join(": ")
  // Brokers have served all that we ask for since long.
  return unserved.has(label) ? `${reason}; does KAFKA_BROKERS name a controller?` : reason.slice(0, longest)
}

const gravest: ReadonlyArray<Refusal["outcome"]> = ["rejected", "misconfigured", "unavailable"]

/** What became of the rows that were not acked; undefined: the error is a defect. */
export const refusalOf = ({ cause }: KafkaFailure): Refusal | undefined => {
  const errors = innermost(cause)
  if (errors.some(isDefect)) return undefined
  const refusals = errors.map((error) => ({ outcome: outcomeOf(error), reason: reasonOf(error) }))
  // Brokers that were tried one after the other tell their own stories: the one that time alone does not mend counts.
  const found = gravest.map((outcome) => refusals.findLast((refusal) => refusal.outcome === outcome))
  return found.find((refusal) => refusal !== undefined)
}

export const hasCode = ({ cause }: KafkaFailure, ...codes: ReadonlyArray<number>): boolean =>
  innermost(cause).some((error) => codes.includes(codeOf(error) ?? 0))

/** For people. */
export const explain = (failure: KafkaFailure): string => refusalOf(failure)?.reason ?? reasonOf(failure.cause)
