// Rejected promises that no code awaits. Those that remain when a call ends are logged for the author.
import { atEnd, building } from "./bindings";
import { inspect } from "./inspect";
import { ambient } from "./session";

// Most are awaited a moment later, so more are remembered than are logged.
const remembered = 100;
const told = 10;
const left = new Map<object, unknown>();
let any = false;

/** The engine calls this when a promise without a handler is rejected, and when it gets a handler later. */
export function rejected(promise: object, reason: unknown, handled: number): void {
  if (handled) left.delete(promise);
  else if (left.size < remembered) {
    left.set(promise, reason);
    any = true;
  }
}

atEnd(() => {
  if (!any || !left.size || building()) return;
  const reasons = [...left.values()].slice(0, told);
  left.clear();
  try {
    const console = ambient("console");
    for (const reason of reasons) console?.log("warn", `a promise was rejected and not awaited: ${inspect(reason)}`);
  } catch {
    // A failed report does not change the result of the call.
  }
});
