/** The options of delivery (X1, X2), already validated. */
import { Context, Duration } from "effect"

export interface Options {
  /** Refusals of one row's content before it is parked. */
  readonly maxAttempts: number
  /** How long delivered and expired rows are kept. */
  readonly retention: Duration.Duration
  /** When a hub push has lost its use. */
  readonly realtimeMaxAge: Duration.Duration
}

export const defaults: Options = {
  maxAttempts: 5,
  retention: Duration.days(7),
  realtimeMaxAge: Duration.hours(24)
}

export class DeliveryOptions extends Context.Service<DeliveryOptions, Options>()(
  "conference-room-reaper/DeliveryOptions"
) {}
