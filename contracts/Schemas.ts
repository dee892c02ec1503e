/**
 * The JSON Schemas (draft 2020-12) of all that leaves the process, generated from the schemas that the worker itself
 * encodes with, so that neither can say what the other does not. Objects are open: fields may be added.
 */
import { type JsonSchema, Schema } from "effect"
import { Payload } from "../src/domain/ConferenceEnded.ts"
import { HubPush } from "../src/domain/RealtimeSignal.ts"
import { StopRequest } from "../src/domain/StopRequest.ts"

const document = (schema: Schema.Constraint): JsonSchema.JsonSchema => ({
  $schema: "https://json-schema.org/draft/2020-12/schema",
  ...Schema.toJsonSchemaDocument(schema).schema
})

export const schemas = {
  "conference-ended": document(Payload),
  "recorder-stop": document(StopRequest),
  "hub-push": document(HubPush)
}
export type Name = keyof typeof schemas
export const names = Object.keys(schemas) as ReadonlyArray<Name>

/** Where the schema stands, below `contracts/` and below `contracts/released/`. */
export const fileName = (name: Name): string => `${name}.schema.json`

/** The text of the schema's file. */
export const fileText = (name: Name): string => `${JSON.stringify(schemas[name], null, 2)}\n`
