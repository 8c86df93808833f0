// WeakRef. Its target lives at least until the pending jobs have run. The engine counts references, and frees an object with
// the last one.
import { keep } from "./bindings";
import { define } from "./global";

export function installWeakRef(): void {
  const Native = WeakRef;
  const { prototype } = Native;
  const { deref } = prototype;
  function Kept(target: WeakKey): WeakRef<WeakKey> {
    if (!new.target) throw new TypeError("WeakRef: it is made with new");
    const made = Reflect.construct(Native, [target], new.target);
    keep(target);
    return made;
  }
  Object.defineProperty(Kept, "prototype", { value: prototype, writable: false });
  const methods = {
    deref(this: WeakRef<WeakKey>): WeakKey | undefined {
      const target = deref.call(this);
      if (target !== undefined) keep(target);
      return target;
    },
  };
  Object.defineProperty(prototype, "deref", { value: methods.deref, writable: true, configurable: true });
  Object.defineProperty(prototype, "constructor", { value: Kept, writable: true, configurable: true });
  Object.defineProperty(Kept, "name", { value: "WeakRef", configurable: true });
  define("WeakRef", Kept);
}
