/**
 * The log, one entry at a time to standard error: JSON for machines, a line to read for a terminal (M). Writing a log
 * never fails and never throws: a value that cannot be printed is replaced, a closed standard error is ignored.
 */
import { stripVTControlCharacters, styleText } from "node:util"
import {
  Array as Arr,
  Cause,
  Context,
  Effect,
  Formatter,
  Layer,
  Logger,
  type LogLevel,
  Option,
  References,
  Tracer
} from "effect"

type Format = "json" | "pretty"

interface Entry {
  readonly timestamp: string
  readonly level: string
  readonly message: string
  readonly annotations: ReadonlyArray<readonly [name: string, value: unknown]>
  readonly cause: string
  readonly span: Tracer.AnySpan | undefined
}

const unprintable = "<unprintable>"

const orUnprintable = (print: () => string): string => {
  try {
    return print()
  } catch {
    return unprintable
  }
}

// Circular references are left out and Redacted prints <redacted>; a bigint on its own is plain digits.
const json = (value: unknown): string => {
  try {
    return typeof value === "bigint" ? `"${value}"` : Formatter.formatJson(value)
  } catch {
    return JSON.stringify(unprintable)
  }
}

const messagePart = (part: unknown): string => {
  if (typeof part === "string") return part
  return part instanceof Error ? orUnprintable(() => `${part.name}: ${part.message}`) : json(part)
}

const makeEntry = ({ cause, date, fiber, logLevel, message }: Logger.Options<unknown>): Entry => {
  const parts = Arr.ensure(message)
  const causes = [...(cause.reasons.length > 0 ? [cause] : []), ...parts.filter(isError).map(Cause.die)]
  return {
    timestamp: orUnprintable(() => date.toISOString()),
    level: logLevel.toUpperCase(),
    message: parts.map(messagePart).join(" "),
    annotations: Object.entries(fiber.getRef(References.CurrentLogAnnotations)),
    cause: causes.map((each) => orUnprintable(() => Cause.pretty(each))).join("\n"),
    span: Context.getOrUndefined(fiber.context, Tracer.ParentSpan)
  }
}

const isError = (part: unknown): part is Error => part instanceof Error

const ownFields = new Set(["timestamp", "level", "message", "cause", "traceId", "spanId"])

/** Put together field by field: neither a getter that throws nor a name like `__proto__` costs the rest of the line. */
const toJson = (entry: Entry): string => {
  const { annotations, cause, level, message, span, timestamp } = entry
  const fields: Array<readonly [string, unknown]> = [
    ["timestamp", timestamp],
    ["level", level],
    ["message", message],
    ...annotations.map(([name, value]) => [ownFields.has(name) ? `annotations.${name}` : name, value] as const)
  ]
  // "noop" is what a span has for an id where tracing is switched off.
  if (span !== undefined && span.traceId !== "noop") fields.push(["traceId", span.traceId], ["spanId", span.spanId])
  if (cause !== "") fields.push(["cause", cause])
  return `{${fields.map(([name, value]) => `${JSON.stringify(name)}:${json(value)}`).join(",")}}`
}

const colours: Partial<Record<string, Parameters<typeof styleText>[0]>> = {
  TRACE: "gray",
  DEBUG: "gray",
  INFO: "green",
  WARN: "yellow",
  ERROR: "red",
  FATAL: ["bold", "red"]
}

// Text from outside must not move the terminal's cursor or forge a line of its own.
const visible = (text: string): string =>
  stripVTControlCharacters(text)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
    .replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, " ")
    .replaceAll("\n", "\n  ")

const prettyValue = (value: unknown): string =>
  visible(typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : json(value))

const toPretty = (entry: Entry, hasColours: boolean): string => {
  const style = (format: Parameters<typeof styleText>[0], text: string) =>
    hasColours ? styleText(format, text, { validateStream: false }) : text
  return [
    style("gray", entry.timestamp.slice(11, 23)),
    style(colours[entry.level] ?? "reset", entry.level.padEnd(5)),
    visible(entry.message),
    ...entry.annotations.map(([name, value]) => `${style("cyan", `${visible(name)}=`)}${prettyValue(value)}`)
  ]
    .join(" ")
    .concat(entry.cause === "" ? "" : `\n  ${visible(entry.cause)}`)
}

const write = (line: string): void => {
  try {
    process.stderr.write(`${line}\n`)
  } catch {
    // There is nowhere left to say it.
  }
}

const makeLogger = (print: (entry: Entry) => string): Logger.Logger<unknown, void> =>
  Logger.make((options) => write(orUnprintable(() => print(makeEntry(options)))))

// Keeps a span's log lines as its events, but without the right to fail.
const spanEvents = Logger.make<unknown, void>((options) => {
  try {
    Logger.tracerLogger.log(options)
  } catch {
    // The line itself was written.
  }
})

const ignore = (): void => {}

// Without a listener a reader that went away (EPIPE) would end the process. It stays for the life of the process, since
// the last lines come when every layer is closed.
const surviveClosedStderr = Effect.sync(() => {
  if (!process.stderr.listeners("error").includes(ignore)) process.stderr.on("error", ignore)
})

/** Replaces Effect's loggers. Without a format of its own the log is pretty on a terminal, else JSON. */
export const layer = (
  log: { readonly level: LogLevel.LogLevel; readonly format: Option.Option<Format> },
  stderrIsTTY: boolean
): Layer.Layer<never> => {
  const hasColours = stderrIsTTY && !process.env.NO_COLOR
  const format = Option.getOrElse(log.format, (): Format => (stderrIsTTY ? "pretty" : "json"))
  const print = format === "json" ? toJson : (entry: Entry) => toPretty(entry, hasColours)
  return Layer.mergeAll(
    Logger.layer([makeLogger(print), spanEvents]),
    Layer.succeed(References.MinimumLogLevel, log.level),
    Layer.effectDiscard(surviveClosedStderr)
  )
}
