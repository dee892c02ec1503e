/** Entry point: what has to be in place before the program is loaded, which takes a moment. */

// A reader that goes away (`| head`, a closed terminal) must not end the worker; that its result is lost must be told.
let isOutputLost = false
process.stdout.on("error", () => {
  isOutputLost = true
})
process.stderr.on("error", () => {})

const args = process.argv.slice(2)
// L5: a stop by SIGTERM or SIGINT is how a worker ends well; any other command was cut short.
const stopped = args[0] === "run" ? 0 : 130

// A closed terminal is a stop like any other: the embedded server must not stay behind.
process.on("SIGHUP", () => process.kill(process.pid, "SIGTERM"))

// As PID 1 a process does not even hear a signal that nobody listens to.
let isLoaded = false
let firstSignalAt: number | undefined
const onSignal = () => {
  if (!isLoaded) process.exit(stopped)
  // A terminal's Ctrl-C comes twice under npm, which passes on what the terminal has sent to all. A later one is meant:
  // the stop takes too long for somebody. What was not committed is rolled back, what was not marked is sent again.
  firstSignalAt ??= performance.now()
  if (performance.now() - firstSignalAt > 1000) process.exit(stopped === 0 ? 1 : stopped)
}
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, onSignal)

const { runProgram } = await import("./program/commands/RunProgram.ts")
runProgram(args, stopped, () => isOutputLost)
isLoaded = true
