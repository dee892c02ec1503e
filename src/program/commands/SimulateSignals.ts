/** Ctrl-C once more: the first one is how a simulation ends, the next one breaks off what is left to do. */
import { Effect } from "effect"

// npm hands on the Ctrl-C that the terminal has sent to both of them: one press comes twice.
const onePress = "500 millis"

const signals = ["SIGINT", "SIGTERM"] as const

const nextSignal = Effect.callback<void>((resume) => {
  const heard = () => resume(Effect.void)
  for (const signal of signals) process.on(signal, heard)
  return Effect.sync(() => {
    for (const signal of signals) process.off(signal, heard)
  })
})

/** To be waited for from the first signal on. */
export const secondSignal = Effect.andThen(Effect.sleep(onePress), nextSignal)
