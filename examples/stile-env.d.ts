// Written by `stile types`: the bindings of "analyst.json", "denied.json", "notes.json", "schedule.json".
import type { wit } from "stile";

declare module "stile" {
  interface Env {
    readonly clock: Clock;
    readonly console: Log;
    readonly events: Kv;
    readonly github: Http;
    readonly notes: Workspace;
    readonly random: Random;
    readonly runner: Code;
  }
}
