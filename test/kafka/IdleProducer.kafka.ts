/** A connected producer that sends nothing costs nothing, and says nothing on standard error. */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { topic } from "../../src/domain/ConferenceEnded.ts"
import { clients } from "./Events.ts"
import { mockCluster } from "./support/MockCluster.ts"
import { requirements, titled } from "./support/Requirements.ts"

const lacking = requirements("mock")

const script = join(import.meta.dirname, "IdleProcess.ts")

describe.skipIf(lacking.length > 0)(titled("an idle producer", lacking), () => {
  it.live.each(clients.map(([name]) => name))(
    "takes less than a hundredth of a core and prints no warning: %s",
    (name) =>
      Effect.gen(function* () {
        const mock = yield* mockCluster({ brokers: 3 })
        yield* mock.createTopic(topic, 6, 3)
        const run = promisify(execFile)
        const { stdout, stderr } = yield* Effect.promise(() =>
          run(process.execPath, [script, name, mock.brokers.join(), "5"])
        )
        assert.strictEqual(stderr, "")
        const { acked, cpu } = JSON.parse(stdout) as { readonly acked: boolean; readonly cpu: number }
        assert.isTrue(acked)
        assert.isBelow(cpu, 50)
      })
  )
})
