/**
 * How the receivers stand, as this instance's last sends left them. A receiver that is away degrades delivery and never
 * makes the process dead or unready: rows wait in their table, and rooms are closed meanwhile.
 */
import { Context, Effect, Layer } from "effect"

export type DeliveryName = "outbox" | "realtime"

export type ReceiverHealth =
  | { readonly status: "up" }
  | { readonly status: "degraded"; readonly reason: string }
  | { readonly status: "not-configured" }

export class DeliveryHealth extends Context.Service<
  DeliveryHealth,
  {
    readonly report: (name: DeliveryName, health: ReceiverHealth) => Effect.Effect<void>
    /** Not configured is what no dispatcher has reported on. */
    readonly check: Effect.Effect<Readonly<Record<DeliveryName, ReceiverHealth>>>
  }
>()("conference-room-reaper/DeliveryHealth") {}

export const layer: Layer.Layer<DeliveryHealth> = Layer.sync(DeliveryHealth, () => {
  let receivers: Readonly<Record<DeliveryName, ReceiverHealth>> = {
    outbox: { status: "not-configured" },
    realtime: { status: "not-configured" }
  }
  return {
    report: (name, health) =>
      Effect.sync(() => {
        receivers = { ...receivers, [name]: health }
      }),
    check: Effect.sync(() => receivers)
  }
})
