// setImmediate and clearImmediate.
import { report } from "../failure";
import { install } from "../global";
import { task } from "../tasks";

const pending = new Set<object>();

function setImmediate(callback: (...args: unknown[]) => void, ...args: unknown[]): object {
  if (typeof callback !== "function") throw new TypeError("setImmediate: the callback is not a function");
  const immediate = { ref: () => immediate, unref: () => immediate, hasRef: () => true };
  pending.add(immediate);
  task("setImmediate", () => {
    if (!pending.delete(immediate)) return;
    try {
      callback(...args);
    } catch (error) {
      report(error);
    }
  });
  return immediate;
}
function clearImmediate(immediate: unknown): void {
  pending.delete(immediate as object);
}
install({ setImmediate, clearImmediate });
