import { describe, expect, it } from "vitest"
import { notingPartitioner } from "../../src/layers/KafkajsClient.ts"
import { hashOf } from "../../src/layers/PlatformaticClient.ts"
import { javaPartitions } from "../kafka/JavaPartitions.ts"

const metadata = (partitions: number) =>
  Array.from({ length: partitions }, (_, partitionId) => ({
    partitionErrorCode: 0,
    partitionId,
    leader: 1,
    replicas: [1],
    isr: [1]
  }))

const byKafkajs = (key: string, partitions: number) =>
  notingPartitioner().createPartitioner()({
    topic: "any",
    partitionMetadata: metadata(partitions),
    message: { key, value: "" }
  })

describe("a key goes where Java's client would put it", () => {
  it.each(javaPartitions)("%s", (key, hash, ofSix, ofTwelve) => {
    expect(hashOf(key)).toBe(hash)
    expect([byKafkajs(key, 6), byKafkajs(key, 12)]).toEqual([ofSix, ofTwelve])
  })
})

describe("the partition that was noted for a message", () => {
  const message = { key: "5f0c3a52-9d0e-5c57-8b9e-3f6c6a1d7c41", value: "" }
  const choose = (createPartitioner: ReturnType<typeof notingPartitioner>["createPartitioner"], partitions: number) =>
    createPartitioner()({ topic: "any", partitionMetadata: metadata(partitions), message })

  it("is the one it was put into, however often it was tried", () => {
    const { createPartitioner, partitionOf } = notingPartitioner()
    choose(createPartitioner, 6)
    expect(partitionOf(message)).toBe(choose(createPartitioner, 6))
  })

  it("is none when the topic has grown between two tries: either may have been answered", () => {
    const { createPartitioner, partitionOf } = notingPartitioner()
    choose(createPartitioner, 6)
    choose(createPartitioner, 12)
    expect(partitionOf(message)).toBe(-1)
    choose(createPartitioner, 12)
    expect(partitionOf(message)).toBe(-1)
  })

  it("is none for a message that was never sent", () => {
    expect(notingPartitioner().partitionOf(message)).toBe(-1)
  })
})
