/** Makes the suites on real brokers visible in `npm test`, which needs nothing but Node: they are skipped there by name. */
import { readdirSync } from "node:fs"
import { describe, expect, it } from "vitest"

const suites = readdirSync(import.meta.dirname).filter((name) => name.endsWith(".kafka.ts"))

describe("on real brokers", () => {
  it("has suites", () => {
    expect(suites.length).toBeGreaterThan(0)
  })

  for (const suite of suites)
    it.skip(`${suite}: by npm run test:kafka, which needs Java, Maven, kcat and gcc`, () => {})
})
