/**
 * Leads from a delivered row back to the cycle that wrote it: the trace context and the correlation id stored with the
 * row, so that one trace shows cycle, room and publish.
 */
import { Option, type Tracer } from "effect"
import { Headers, HttpTraceContext } from "effect/http"

type StoredHeaders = Readonly<Record<string, string>>

/** A child of the room's span, or a root where no valid context was stored. */
export const parentOf = (headers: StoredHeaders): Tracer.SpanOptionsNoTrace =>
  Option.match(HttpTraceContext.w3c(Headers.fromInput(headers)), {
    onNone: () => ({ root: true }),
    onSome: (parent) => ({ parent })
  })

/** Log annotations and span attributes of a row, beside those of its kind. */
export const correlation = (headers: StoredHeaders) => {
  const correlationId = headers["correlation-id"]
  return correlationId === undefined ? {} : { correlationId }
}
