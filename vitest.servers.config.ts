import { defineConfig } from "vitest/config"

// What runs on PostgreSQL, once more on each of the other servers; each project's own server is found by its name.
const suites = {
  include: ["test/layers/Pg*.contract.integration.test.ts", "test/program/*.integration.test.ts"],
  exclude: ["test/program/HttpApi.integration.test.ts"]
}

const project = (
  name: string,
  { include = [], exclude = [] }: { include?: Array<string>; exclude?: Array<string> }
) => ({
  test: {
    name,
    include: ["test/servers/Server.servers.ts", ...include],
    exclude,
    globalSetup: ["test/servers/globalSetup.ts"],
    testTimeout: 20_000,
    hookTimeout: 60_000
  }
})

export default defineConfig({
  test: {
    maxWorkers: 2,
    silent: "passed-only",
    projects: [
      project("PostgreSQL 18", { include: ["test/servers/BlackHole.servers.ts"] }),
      project("PgBouncer", {
        ...suites,
        include: [...suites.include, "test/servers/RunLock.servers.ts", "test/servers/WakeUps.servers.ts"]
      }),
      project("PostgreSQL 14", suites),
      project("PostgreSQL 15 of Debian", { include: ["test/layers/Pg*.contract.integration.test.ts"] })
    ]
  }
})
