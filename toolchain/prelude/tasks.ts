// Tasks: functions that run when no job is left, in order. Unlike jobs of promises, they let what the call waits for go on.
import { building, task as soon } from "./bindings";
import { pause } from "./clock";
import { ask } from "./errors";
import { report } from "./failure";
import { ambient } from "./session";

/** Runs a function as a task. `operation` is the API that does so. */
export function task(operation: string, run: () => void): void {
  if (building()) throw new Error(`${operation} is not available at top level; use it inside a tool's run`);
  const clock = ambient("clock");
  // A clock that rings at once has the host look at everything else that is ready.
  if (clock) ask(() => pause(clock, 0)).then(run).catch(report);
  else soon(run);
}
