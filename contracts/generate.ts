/** Writes the schema files. A release copies them to `released/`; until then that folder is what was promised last. */
import { writeFileSync } from "node:fs"
import { fileName, fileText, names } from "./Schemas.ts"

for (const name of names) writeFileSync(new URL(fileName(name), import.meta.url), fileText(name))
