// Promises that were rejected and that nobody waits for. An author is told of those that are left when a call ends.
import { atEnd, building } from "./bindings";
import { inspect } from "./inspect";
import { ambient } from "./session";

// Most are waited for a moment later, so more are remembered than are told of.
const remembered = 100;
const told = 10;
const left = new Map<object, unknown>();

/** The engine calls this when a promise is rejected that nobody waits for, and when somebody does after all. */
export function rejected(promise: object, reason: unknown, handled: number): void {
  if (handled) left.delete(promise);
  else if (left.size < remembered) left.set(promise, reason);
}

atEnd(() => {
  if (!left.size || building()) return;
  const reasons = [...left.values()].slice(0, told);
  left.clear();
  try {
    const console = ambient("console");
    for (const reason of reasons) console?.log("warn", `a promise was rejected and not awaited: ${inspect(reason)}`);
  } catch {
    // The call ends as it would have ended: this was for its author only.
  }
});
