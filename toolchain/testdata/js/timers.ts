// bindings: clock
import { equal, ok, throws } from "./assert";

export default async function (): Promise<void> {
  const order: unknown[] = [];
  const start = performance.now();
  setTimeout(() => order.push("late"), 120);
  setTimeout((a: number, b: string) => order.push(a, b), 60, 1, "two");
  setTimeout(() => {
    order.push("now");
    Promise.resolve().then(() => order.push("job"));
  }, 0);
  setTimeout(() => order.push("now too"), 0);
  queueMicrotask(() => order.push("microtask"));
  Promise.resolve().then(() => order.push("promise"));
  const never = setTimeout(() => order.push("never"), 1);
  clearTimeout(never);
  clearTimeout(undefined);
  clearTimeout(12345);
  await new Promise((resolve) => setTimeout(resolve, 180));
  equal(order, ["microtask", "promise", "now", "job", "now too", 1, "two", "late"]);
  ok(performance.now() - start >= 179, "time passed");

  let ticks = 0;
  await new Promise<void>((resolve) => {
    const id = setInterval(() => {
      if (++ticks === 3) {
        clearInterval(id);
        resolve();
      }
    }, 2);
  });
  await new Promise((resolve) => setTimeout(resolve, 10));
  equal(ticks, 3);

  // Many at once share a few waits.
  const done = await Promise.all(
    Array.from({ length: 300 }, (_, i) => new Promise((resolve) => setTimeout(resolve, i % 10, i))),
  );
  equal(done.length, 300);
  // The delay has 32 bits.
  await new Promise((resolve) => setTimeout(resolve, 2 ** 32));
  throws(() => setTimeout("code" as any, 1), { name: "TypeError" });
  ok(Date.now() > 1_600_000_000_000, "the date is today's");
}
