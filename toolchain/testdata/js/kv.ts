// bindings: kv
import { equal, ok, rejects } from "./assert";

export default async function (_: unknown, { kv }: any): Promise<void> {
  equal(await kv.get("a"), undefined);
  equal(await kv.set("a", "1"), undefined);
  equal(await kv.get("a"), "1");
  equal([await kv.delete("a"), await kv.delete("a")], [true, false]);
  equal([await kv.increment("n"), await kv.increment("n", 41), await kv.increment("n", -2)], [1, 42, 40]);
  await rejects(kv.increment("n", 1.5), { name: "RangeError" });
  await rejects(kv.increment("n", 1n), { name: "TypeError", message: "a number is wanted, not a bigint" });
  equal(await kv.compareAndSet("c", undefined, "x"), true);
  equal(await kv.compareAndSet("c", "y", "z"), false);
  equal(await kv.compareAndSet("c", "x", undefined), true);
  equal(await kv.get("c"), undefined);
  await Promise.all(["p/3", "p/1", "p/2"].map((key) => kv.set(key, key)));
  const { entries, cursor } = await kv.list("p/");
  equal([entries.map((entry: any) => entry.key), cursor], [["p/1", "p/2", "p/3"], undefined]);
  const page = await kv.list("p/", { limit: 2 });
  equal(page.entries.length, 2);
  ok(typeof page.cursor === "string", "more follow");
  equal((await kv.list("p/", { limit: 2, cursor: page.cursor })).entries, [{ key: "p/3", value: "p/3" }]);
  const { get } = kv;
  equal(await get("n"), "40", "methods need no object");
  await rejects(kv.set("x", { not: "text" }), { name: "TypeError" });
  await kv.set("snow", "☃😀\0");
  equal(await kv.get("snow"), "☃😀\0");
}
