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

const isOn = (env: Environment, signal: "TRACES" | "METRICS"): boolean =>
  env.OTEL_SDK_DISABLED?.trim().toLowerCase() !== "true" &&
  (isSet(env.OTEL_EXPORTER_OTLP_ENDPOINT) || isSet(env[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`])) &&
  exportsOtlp(env[`OTEL_${signal}_EXPORTER`])

export const signals = (env: Environment): Signals => ({
  traces: isOn(env, "TRACES"),
  metrics: isOn(env, "METRICS")
})

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
