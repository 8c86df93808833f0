// Rejected promises that no code awaits. Those that remain when a call ends are logged for the author.
import { atEnd, building, onIdle } from "./bindings";
import { inspect } from "./inspect";
import { ambient } from "./session";

// Most are awaited a moment later, so more are remembered than are logged.
const remembered = 100;
const told = 10;
const left = new Map<object, unknown>();
let any = false;

type Act = (promise: object, reason: unknown) => void;
let unhandled: ((promise: object, reason: unknown) => boolean) | undefined;
let handledLater: Act | undefined;
// Rejections that unhandled has not seen, and promises that it has.
let unseen: object[] = [];
const seen = new WeakSet<object>();

/** Sets functions that see promises that nobody awaits once no job is left, and those that somebody awaits after that. What `first` returns
 * true for is not logged. */
export function onRejections(first: NonNullable<typeof unhandled>, second: Act): void {
  unhandled = first;
  handledLater = second;
  onIdle(() => {
    const found = unseen.filter((promise) => left.has(promise));
    unseen = [];
    for (const promise of found) {
      seen.add(promise);
      try {
        if (unhandled!(promise, left.get(promise))) left.delete(promise);
      } catch {
        // It is logged, like one that no listener takes.
      }
    }
    return found.length > 0;
  });
}

/** The engine calls this when a promise without a handler is rejected, and when it gets a handler later. */
export function rejected(promise: object, reason: unknown, handled: number): void {
  if (handled) {
    left.delete(promise);
    if (handledLater && seen.delete(promise)) handledLater(promise, reason);
  } else if (left.size < remembered) {
    left.set(promise, reason);
    any = true;
    if (unhandled) unseen.push(promise);
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
