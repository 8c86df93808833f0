// Written by `stile types`: the bindings of "notes.json".
import type { wit } from "stile";

declare module "stile" {
  interface Env {
    readonly notes: Workspace;
    readonly site: Http;
  }
}
