// Written by `stile types`: the bindings of "notes.json".
import type { wit } from "stile";

declare module "stile" {
  interface Env {
    readonly clock: Clock;
    readonly console: Log;
    readonly notes: Workspace;
    readonly random: Random;
    readonly site: Http;
  }
}
