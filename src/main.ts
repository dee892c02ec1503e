/** Entry point: what has to be in place before the program is loaded, which takes a moment. */

// A reader that goes away (`| head`, a closed terminal) must not end the worker.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {})

const args = process.argv.slice(2)
// L5: a stop by SIGTERM or SIGINT is how a worker ends well; any other command was cut short.
const stopped = args[0] === "run" ? 0 : 130

// As PID 1 a process does not even hear a signal that nobody listens to.
const stopLoading = () => process.exit(stopped)
const signals = ["SIGTERM", "SIGINT"] as const
for (const signal of signals) process.on(signal, stopLoading)

const { runProgram } = await import("./program/commands/RunProgram.ts")
runProgram(args, stopped)
for (const signal of signals) process.off(signal, stopLoading)
