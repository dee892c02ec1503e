import { defineConfig } from "vitest/config"

// Suites on real brokers, one file after the other: each starts JVMs of its own. The first run of all fetches Kafka.
export default defineConfig({
  test: {
    include: ["test/kafka/**/*.kafka.ts"],
    globalSetup: ["test/support/globalSetup.ts"],
    fileParallelism: false,
    testTimeout: process.env.DELIVERY_TESTS === "long" ? 900_000 : 180_000,
    hookTimeout: 300_000,
    silent: "passed-only"
  }
})
