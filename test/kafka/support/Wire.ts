/**
 * As much of Kafka's protocol as the proxy and the wait for a node need: frames, whose head names the request, and where a
 * Metadata answer (any version) holds the brokers' ports and the controller.
 */
import { connect } from "node:net"
import { Effect } from "effect"
import { KafkaUnavailable } from "./KafkaUnavailable.ts"

export const apiKey = { produce: 0, fetch: 1, listOffsets: 2, metadata: 3, initProducerId: 22 } as const

const sizeOf = (bytes: Buffer) => (bytes.length < 4 ? Number.POSITIVE_INFINITY : 4 + bytes.readInt32BE(0))

/** Cuts a stream into frames; each still begins with its four bytes of length. */
export const frames = (onFrame: (frame: Buffer) => void) => {
  let rest: Buffer = Buffer.alloc(0)
  return (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    while (rest.length >= sizeOf(rest)) {
      const size = sizeOf(rest)
      onFrame(rest.subarray(0, size))
      rest = rest.subarray(size)
    }
  }
}

export const requestHead = (frame: Buffer) => ({
  apiKey: frame.readInt16BE(4),
  apiVersion: frame.readInt16BE(6),
  correlationId: frame.readInt32BE(8)
})

export const correlationIdOf = (answer: Buffer) => answer.readInt32BE(4)

const reader = (frame: Buffer, flexible: boolean) => {
  let at = 8
  const skip = (bytes: number) => {
    at += bytes
    return at - bytes
  }
  const int32 = () => frame.readInt32BE(skip(4))
  const varint = (): number => {
    const byte = frame.readUInt8(skip(1))
    return byte < 128 ? byte : byte - 128 + 128 * varint()
  }
  return {
    skip,
    int32,
    count: () => (flexible ? varint() - 1 : int32()),
    skipText: () => skip(Math.max(0, flexible ? varint() - 1 : frame.readInt16BE(skip(2)))),
    skipTags: () => {
      for (let left = flexible ? varint() : 0; left > 0; left--) {
        varint()
        skip(varint())
      }
    }
  }
}

interface BrokerPlace {
  readonly id: number
  readonly port: number
  /** Where in the frame the port stands, as four bytes. */
  readonly portAt: number
}

/** The brokers in a Metadata answer, and where the controller's id stands. */
export const brokersIn = (answer: Buffer, version: number) => {
  const { skip, int32, count, skipText, skipTags } = reader(answer, version >= 9)
  skipTags()
  if (version >= 3) skip(4)
  const brokers: Array<BrokerPlace> = []
  for (let left = count(); left > 0; left--) {
    const id = int32()
    skipText()
    const portAt = skip(4)
    brokers.push({ id, port: answer.readInt32BE(portAt), portAt })
    if (version >= 1) skipText()
    skipTags()
  }
  if (version >= 2) skipText()
  return { brokers, controllerAt: version >= 1 ? skip(4) : undefined }
}

// Metadata version 1, no client id, no topics: length, api key, version, correlation id, -1, 0.
const metadataRequest = Buffer.from("0000000e" + "0003" + "0001" + "00000001" + "ffff" + "00000000", "hex")

/** The ids of the brokers that are in service, as the broker on this port knows them; fails while it serves nobody. */
export const brokersKnownTo = (port: number) =>
  Effect.callback<ReadonlyArray<number>, KafkaUnavailable>((resume) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(metadataRequest))
    const read = frames((answer) => {
      resume(Effect.succeed(brokersIn(answer, 1).brokers.map(({ id }) => id)))
      socket.destroy()
    })
    socket.on("data", read).on("error", () => {})
    socket.on("close", () => resume(new KafkaUnavailable({ message: `nobody answers on port ${port}` })))
    return Effect.sync(() => socket.destroy())
  }).pipe(
    Effect.timeoutOrElse({
      duration: "5 seconds",
      orElse: () => new KafkaUnavailable({ message: `port ${port} is silent` })
    })
  )
