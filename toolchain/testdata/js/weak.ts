// bindings: clock
import { equal, ok, throws } from "./assert";

const atTopLevel = new WeakRef({ made: "at top level" });
const seenAtTopLevel = atTopLevel.deref()?.made;

export default async function (): Promise<void> {
  // A target lives to the end of the job that made or read its reference, and of those that come of it.
  const ref = new WeakRef({ n: 1 });
  equal(ref.deref()?.n, 1);
  await null;
  equal(ref.deref()?.n, 1);
  await new Promise((resolve) => setTimeout(resolve, 0));
  equal(ref.deref(), undefined);

  let held: object | undefined = { n: 2 };
  const kept = new WeakRef(held);
  await new Promise((resolve) => setTimeout(resolve, 0));
  equal(kept.deref(), held);
  held = undefined;
  equal((kept.deref() as any).n, 2);
  await new Promise((resolve) => setTimeout(resolve, 0));
  equal(kept.deref(), undefined);

  // What was kept while the image was made is not kept on.
  equal(seenAtTopLevel, "at top level");
  equal(atTopLevel.deref(), undefined);

  // It looks as it should.
  equal([WeakRef.name, WeakRef.length, ref instanceof WeakRef, ref.constructor === WeakRef], ["WeakRef", 1, true, true]);
  equal(Object.prototype.toString.call(ref), "[object WeakRef]");
  equal(Object.keys(ref), []);
  throws(() => (WeakRef as any)({}), { name: "TypeError" });
  throws(() => new WeakRef(1 as any), { name: "TypeError" });
  throws(() => WeakRef.prototype.deref.call({} as any), { name: "TypeError" });
  class Sub extends WeakRef<object> {}
  ok(new Sub({ n: 3 }).deref() !== undefined && new Sub({}) instanceof Sub, "subclasses");
  const symbol = Symbol("s");
  equal(new WeakRef(symbol as any).deref(), symbol);

  // A registry tells of an object that is gone, in a job of its own, and not of one that was unregistered.
  const told: unknown[] = [];
  const registry = new FinalizationRegistry((held) => told.push(held));
  const token = {};
  (() => {
    registry.register({}, "gone");
    const object = {};
    registry.register(object, "unregistered", token);
    registry.unregister(token);
  })();
  const alive = {};
  registry.register(alive, "alive");
  await new Promise((resolve) => setTimeout(resolve, 0));
  ok(told.length === 1 && told[0] === "gone", `told of ${told}`);
  equal(typeof alive, "object");
}
