/**
 * Which signals go out over OTLP: an endpoint alone turns them on, `OTEL_SDK_DISABLED=true` and an exporter of `none`
 * turn them off, as the OpenTelemetry specification has it. All else of `OTEL_*` is read by its own packages.
 */
type Environment = Readonly<Record<string, string | undefined>>

export interface Signals {
  readonly traces: boolean
  readonly metrics: boolean
}

const isSet = (value: string | undefined): boolean => value !== undefined && value.trim() !== ""

const exportsOtlp = (exporters: string | undefined): boolean =>
  !isSet(exporters) || (exporters ?? "").split(",").some((exporter) => exporter.trim().toLowerCase() === "otlp")

/** Undefined for a signal that goes out. */
const whyOff = (env: Environment, signal: "TRACES" | "METRICS"): string | undefined => {
  if (env.OTEL_SDK_DISABLED?.trim().toLowerCase() === "true") return "OTEL_SDK_DISABLED is true"
  if (!isSet(env.OTEL_EXPORTER_OTLP_ENDPOINT) && !isSet(env[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`])) {
    return "OTEL_EXPORTER_OTLP_ENDPOINT is not set"
  }
  const exporters = env[`OTEL_${signal}_EXPORTER`]
  return exportsOtlp(exporters) ? undefined : `OTEL_${signal}_EXPORTER is ${exporters}`
}

export const signals = (env: Environment): Signals => ({
  traces: whyOff(env, "TRACES") === undefined,
  metrics: whyOff(env, "METRICS") === undefined
})

/** For the start log: what does not go out, and why. */
export const off = (env: Environment): ReadonlyArray<string> => {
  const traces = whyOff(env, "TRACES")
  const metrics = whyOff(env, "METRICS")
  if (traces !== undefined && traces === metrics) return [`OTLP is off (${traces}): traces and metrics are not sent`]
  return [
    ...(traces === undefined ? [] : [`OTLP is off for traces (${traces}): they are not sent`]),
    ...(metrics === undefined ? [] : [`OTLP is off for metrics (${metrics}): they are not sent`])
  ]
}

/** What the standard allows and this process does not do. */
export const warnings = (env: Environment): ReadonlyArray<string> => {
  if (!Object.values(signals(env)).includes(true)) return []
  return [
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"
  ].flatMap((name) =>
    env[name]?.trim() === "grpc"
      ? [`${name}=grpc is not supported: OTLP goes out as http/json, by default port 4318`]
      : []
  )
}
