// Adds up vitest's JSON reports. A step that broke without a failed test (a crash, a check) counts as one failure.
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

const [folder, ...broken] = process.argv.slice(2)
const reports = readdirSync(folder)
  .filter((file) => file.endsWith(".json"))
  .map((file) => ({ suite: file.slice(0, -5).replace("-", ":"), ...JSON.parse(readFileSync(join(folder, file), "utf8")) }))

let passed = 0
let failed = 0
for (const report of reports) {
  passed += report.numPassedTests
  failed += report.numFailedTests
  for (const file of report.testResults) {
    for (const test of file.assertionResults) {
      if (test.status !== "passed" && test.status !== "failed") console.log(`skipped: ${report.suite}: ${test.fullName}`)
    }
  }
}
for (const step of broken) {
  const report = reports.find(({ suite }) => step === `npm ${suite}` || step === `npm run ${suite}`)
  if (report === undefined || report.numFailedTests === 0) failed += 1
  console.log(`broken: ${step}`)
}
if (passed === 0) failed = Math.max(failed, 1)
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
