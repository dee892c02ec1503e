/**
 * The compatibility rule: a released contract only gains optional fields. Whatever was valid stays valid, for a reader
 * of the old schema as for a reader of the new one, so that repeats, late rows and old consumers all go on working.
 * Everything else is a new version: a new topic, or a new end-point.
 */
import { isDeepStrictEqual } from "node:util"

type Node = Readonly<Record<string, unknown>>

// Say nothing about which messages are valid.
const annotations: ReadonlySet<string> = new Set(["$schema", "title", "description", "examples"])

const nodeOf = (value: unknown): Node => (typeof value === "object" && value !== null ? { ...value } : {})
const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

const properties = (released: Node, current: Node, at: string): ReadonlyArray<string> =>
  Object.entries(released).flatMap(([name, node]) =>
    Object.hasOwn(current, name) ? breaks(node, current[name], `${at}/${name}`) : [`${at}/${name}: removed or renamed`]
  )

const members = (released: unknown, current: unknown, at: string, lost: string, gained: string) => [
  ...listOf(released)
    .filter((member) => !listOf(current).includes(member))
    .map((member) => `${at}/${member}: ${lost}`),
  ...listOf(current)
    .filter((member) => !listOf(released).includes(member))
    .map((member) => `${at}/${member}: ${gained}`)
]

const keyword = (key: string, released: unknown, current: unknown, at: string): ReadonlyArray<string> => {
  switch (key) {
    case "properties":
      return properties(nodeOf(released), nodeOf(current), at)
    case "items":
      return breaks(released, current, `${at}[]`)
    case "required":
      return members(released, current, at, "no longer always there", "required now")
    case "enum":
      return members(released, current, at, "no longer allowed", "a value that readers do not know")
    default:
      return isDeepStrictEqual(released, current) ? [] : [`${at}: ${key} changed`]
  }
}

/** What in `current` breaks the promise of `released`; empty when nothing does. */
export const breaks = (released: unknown, current: unknown, at = ""): ReadonlyArray<string> => {
  const [was, is] = [nodeOf(released), nodeOf(current)]
  return [...new Set([...Object.keys(was), ...Object.keys(is)])]
    .filter((key) => !annotations.has(key))
    .flatMap((key) => keyword(key, was[key], is[key], at))
}
