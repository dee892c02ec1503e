import { AuthenticationError, MultipleErrors, NetworkError, ProtocolError, UserError } from "@platformatic/kafka"
import kafkajs from "kafkajs"
import { describe, expect, it } from "vitest"
import {
  explain,
  hasCode,
  KafkaFailure,
  KafkaMisconfigured,
  outcomeOfCode,
  refusalOf
} from "../../src/layers/KafkaErrors.ts"

// The published types forget what these are made of.
const { KafkaJSBrokerNotFound, KafkaJSLockTimeout, KafkaJSNotImplemented, KafkaJSSASLAuthenticationError } =
  kafkajs as unknown as Readonly<
    Record<
      "KafkaJSBrokerNotFound" | "KafkaJSLockTimeout" | "KafkaJSNotImplemented" | "KafkaJSSASLAuthenticationError",
      new (
        message: string
      ) => Error
    >
  >

const refusal = (cause: unknown) => refusalOf(new KafkaFailure({ cause }))

// As kafkajs makes them: the outer error of a retry is never retriable, whatever happened.
const protocolError = (code: number, type: string) =>
  new kafkajs.KafkaJSProtocolError({ type, code, retriable: false, message: `of ${type}` } as unknown as Error)
const finally_ = (cause: Error) => Object.assign(new kafkajs.KafkaJSNonRetriableError(cause), { cause })
const givenUp = (cause: Error) =>
  Object.assign(new kafkajs.KafkaJSNumberOfRetriesExceeded(cause, { retryCount: 2, retryTime: 1 }), { cause })

describe("a code of the protocol", () => {
  it.each([
    ["unavailable", [-99, -1, 2, 3, 5, 6, 7, 8, 9, 13, 19, 20, 41, 45, 46, 47, 56, 59, 74, 75, 89, 90, 1234]],
    ["misconfigured", [17, 21, 29, 31, 33, 34, 35, 53, 58, 76]],
    ["rejected", [10, 18, 32, 44, 87]]
  ] as const)("makes rows %s for %j", (outcome, codes) => {
    expect(codes.map(outcomeOfCode)).toEqual(codes.map(() => outcome))
  })
})

describe("an error of kafkajs", () => {
  it("is judged by its innermost cause, not by what its retries say of it", () => {
    const inner = protocolError(10, "MESSAGE_TOO_LARGE")
    for (const error of [inner, finally_(inner), givenUp(inner), finally_(givenUp(inner))]) {
      expect(refusal(error)).toEqual({ outcome: "rejected", reason: "MESSAGE_TOO_LARGE: of MESSAGE_TOO_LARGE" })
    }
  })

  it.each([
    new kafkajs.KafkaJSConnectionError("Connection error: connect ECONNREFUSED 127.0.0.1:9", { code: "ECONNREFUSED" }),
    new kafkajs.KafkaJSRequestTimeoutError("Request Produce timed out", {} as never),
    new KafkaJSBrokerNotFound("no broker"),
    new KafkaJSLockTimeout("lock"),
    new kafkajs.KafkaJSError("The producer is disconnected"),
    protocolError(-99, "KAFKAJS_UNKNOWN_ERROR_CODE"),
    "not even an error"
  ])("leaves rows unmarked: %s", (error) => {
    expect(refusal(error)?.outcome).toBe("unavailable")
  })

  it.each([
    new KafkaJSSASLAuthenticationError("SASL PLAIN authentication failed"),
    new kafkajs.KafkaJSServerDoesNotSupportApiKey("no such request", { apiKey: 0, apiName: "Produce" } as never),
    new KafkaJSNotImplemented("Snappy"),
    new KafkaMisconfigured({ reason: "cannot read KAFKA_SSL_CA" })
  ])("says that settings are wrong: %s", (error) => {
    expect(refusal(finally_(error))?.outcome).toBe("misconfigured")
  })

  it("does not quote a message that has no value", () => {
    const error = new kafkajs.KafkaJSNonRetriableError('Invalid message without value for topic "t": {"key":"k"}')
    expect(refusal(error)).toEqual({ outcome: "rejected", reason: "a message without a value" })
  })

  it("counts for each topic that could not be created", () => {
    const error = new kafkajs.KafkaJSAggregateError("Topic creation errors", [
      protocolError(36, "TOPIC_ALREADY_EXISTS")
    ])
    expect(hasCode(new KafkaFailure({ cause: error }), 36)).toBe(true)
  })
})

describe("an error of @platformatic/kafka", () => {
  const multiple = (...errors: Array<Error>) => new MultipleErrors("Producing messages failed.", errors)

  it("is judged by every error in it: the one that waiting does not mend counts", () => {
    const network = new NetworkError("Connection closed")
    const stale = new ProtocolError(6)
    const large = new ProtocolError(10)
    expect(refusal(multiple(multiple(stale, network)))?.outcome).toBe("unavailable")
    expect(refusal(multiple(large, multiple(stale, network)))?.outcome).toBe("rejected")
    expect(refusal(multiple(new ProtocolError(29), network))).toMatchObject({
      outcome: "misconfigured",
      reason: expect.stringContaining("TOPIC_AUTHORIZATION_FAILED")
    })
  })

  it("tells a refused login from a connection that was lost during one", () => {
    const during = (cause: Error) => new NetworkError("Connection to x failed.", { cause })
    const refused = new AuthenticationError("SASL authentication failed.", { cause: new ProtocolError(58) })
    expect(refusal(during(refused))?.outcome).toBe("misconfigured")
    expect(refusal(during(new NetworkError("Connection closed")))?.outcome).toBe("unavailable")
  })

  it("knows a missing topic, whose code is lost on the way", () => {
    const failure = new KafkaFailure({ cause: new UserError("Unknown topic pin.messenger.conference-ended.v1.") })
    expect(hasCode(failure, 3)).toBe(true)
    expect(refusalOf(failure)?.outcome).toBe("unavailable")
  })

  it("says that settings are wrong where the broker wants TLS", () => {
    expect(refusal(new UserError("Broker requires TLS."))?.outcome).toBe("misconfigured")
  })
})

describe("an error of our own code", () => {
  it.each([new TypeError("x is not a function"), new RangeError("out of range"), new ReferenceError("y")])(
    "is a defect, also inside of a client's error: %s",
    (error) => {
      expect(refusal(error)).toBeUndefined()
      expect(refusal(finally_(error))).toBeUndefined()
      expect(explain(new KafkaFailure({ cause: error }))).toContain(error.message)
    }
  )
})

describe("a reason", () => {
  it("is one short line", () => {
    const reason = refusal(new kafkajs.KafkaJSError(`a\n  b ${"c".repeat(1000)}`))?.reason ?? ""
    expect(reason).toMatch(/^KafkaJSError: a b c+$/)
    expect(reason.length).toBeLessThanOrEqual(300)
  })
})
