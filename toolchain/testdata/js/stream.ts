// bindings: network, clock
// input.site is what fetch.ts says.
import { equal, ok, rejects, throws } from "./assert";

export default async function ({ site }: any, _env: any): Promise<void> {
  const decoder = new TextDecoder();
  const events = await fetch(`${site}/events`);
  equal([events.bodyUsed, events.body!.locked], [false, false]);
  let text = "";
  for await (const piece of events.body!) text += decoder.decode(piece, { stream: true });
  equal([text, events.bodyUsed, events.body!.locked], ["data: 0\n\ndata: 1\n\ndata: 2\n\n", true, false]);
  await rejects(events.text(), { name: "TypeError", message: "read already" });

  // What has come is there before the rest, and giving up ends the exchange.
  const controller = new AbortController();
  const hanging = await fetch(`${site}/events?hang`, { signal: controller.signal });
  const reader = hanging.body!.getReader();
  let early = "";
  while (early.length < 18) early += decoder.decode((await reader.read()).value, { stream: true });
  equal(early, "data: 0\n\ndata: 1\n\n");
  const stuck = reader.read();
  setTimeout(() => controller.abort(), 5);
  await rejects(stuck, { name: "AbortError" });
  await rejects(reader.read(), { name: "AbortError" });
  const text2 = fetch(`${site}/events?hang`, { signal: AbortSignal.timeout(20) }).then((r) => r.text());
  await rejects(text2, { name: "TimeoutError" });

  const cancelled = await fetch(`${site}/events?hang`);
  for await (const piece of cancelled.body!) if (piece.length) break;
  equal((await cancelled.body!.getReader().read()).done, true, "what was left early is over");

  const large = await fetch(`${site}/large`);
  const copy = large.clone();
  let size = 0;
  for await (const piece of large.body!) {
    ok(piece.length <= 262_144, "a piece crosses at once");
    size += piece.length;
  }
  equal(size, 600_000);
  equal((await copy.text()).length, 600_000, "a copy is read on its own");

  // From one exchange to another without entering the extension.
  const passed = await fetch(`${site}/echo`, { method: "POST", body: (await fetch(`${site}/large`)).body });
  const echoed = await passed.json();
  equal([echoed.body.length, echoed.headers["content-length"], echoed.headers["content-type"]], [600_000, "600000", "text/plain; charset=utf-8"]);

  const own = new Response("é");
  equal([...(await own.body!.getReader().read()).value!], [0xc3, 0xa9]);
  await rejects(own.json(), { name: "TypeError" });
  equal(new Response().body, null);
  equal(new Request(site, { method: "POST", body: new Response("x").body }).bodyUsed, false);
  const given = new Response("x");
  equal([await new Response(given.body).text(), given.bodyUsed], ["x", true]);
  const locked = new Response("x");
  const lock = locked.body!.getReader();
  await rejects(locked.text(), { name: "TypeError" });
  throws(() => locked.body!.getReader(), { name: "TypeError" });
  throws(() => locked.clone(), { name: "TypeError" });
  lock.releaseLock();
  await rejects(lock.read(), { name: "TypeError", message: "released" });
  equal(await locked.text(), "x");
  await rejects(locked.body!.cancel(), { name: "TypeError" });

  // What was read is not held any longer: the host would hold 64 MiB of these.
  for (let i = 0; i < 130; i++) await (await fetch(`${site}/large`)).text();
}
