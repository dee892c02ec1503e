/** All that is wrong with the configuration, in one error (O): the process stops before its first tick, exit code 2. */
import { Schema } from "effect"

export const Problem = Schema.Struct({
  name: Schema.String,
  /** Absent where the variable is unset or its value must not be shown. */
  value: Schema.optionalKey(Schema.String),
  problem: Schema.String,
  allowed: Schema.String
})
export interface Problem extends Schema.Schema.Type<typeof Problem> {}

const maxQuoted = 100

// JSON's quotes make blanks and control characters visible and keep a line one line.
const quote = (value: string): string =>
  JSON.stringify(value.length > maxQuoted ? `${value.slice(0, maxQuoted)}…` : value)

const line = ({ name, value, problem, allowed }: Problem): string =>
  `  ${name}${value === undefined ? "" : `=${quote(value)}`} ${problem}; allowed: ${allowed}`

export class ConfigurationError extends Schema.TaggedError<ConfigurationError>()("ConfigurationError", {
  problems: Schema.Array(Problem)
}) {
  override get message(): string {
    const count = this.problems.length
    return [`wrong configuration, ${count} ${count === 1 ? "problem" : "problems"}:`, ...this.problems.map(line)].join(
      "\n"
    )
  }
}
