/** Reads the contract files, and validates as a consumer would: with a JSON Schema validator of its own. */
import { readdirSync, readFileSync } from "node:fs"
import { Ajv2020 } from "ajv/dist/2020.js"

const folder = new URL("../../contracts/", import.meta.url)

export const read = (path: string): string => readFileSync(new URL(path, folder), "utf8")
export const readJson = (path: string): unknown => JSON.parse(read(path))
export const list = (path: string): ReadonlyArray<string> => readdirSync(new URL(path, folder)).toSorted()

/** What is wrong with the message; null when nothing is. A format is an annotation in this draft: patterns decide. */
export const validator = (schema: unknown) => {
  const ajv = new Ajv2020({ allErrors: true, strict: true, validateFormats: false })
  const validate = ajv.compile(Object(schema))
  return (message: unknown): string | null => (validate(message) ? null : ajv.errorsText(validate.errors))
}
