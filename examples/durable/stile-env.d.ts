// Written by `stile types`: the bindings of "order.json".
import type { wit } from "stile";

declare module "stile" {
  interface Env {
    readonly clock: Clock;
    readonly console: Log;
    readonly mail: Signals;
    readonly orders: Kv;
    readonly random: Random;
  }
}
