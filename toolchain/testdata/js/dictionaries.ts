// bindings: network
import { equal, rejects, throws } from "./assert";

export default async function ({ site }: { site: string }): Promise<void> {
  const any = (value: unknown): any => value;
  const url = `${site}/echo`;
  // Null is a dictionary without members, as in Node.js 20 and browsers.
  equal((await fetch(url, any(null))).status, 200);
  equal(new Request(url, any(null)).method, "GET");
  equal(new Response(null, any(null)).status, 200);
  equal((await Response.json(1, any(null)).json()) as unknown, 1);
  equal(structuredClone(1, any(null)), 1);
  equal(new Blob([], any(null)).type, "");
  equal(new Event("x", any(null)).type, "x");
  equal(new CustomEvent("x", any(null)).detail, null);
  equal(new TextDecoder("utf-8", any(null)).decode(new Uint8Array([65]), any(null)), "A");
  equal(typeof new Response("x").body!.getReader(...([null] as any as [])).read, "function");
  const target = new EventTarget();
  let count = 0;
  const listener = () => count++;
  target.addEventListener("x", listener, any(null));
  target.dispatchEvent(new Event("x"));
  target.removeEventListener("x", listener, any(null));
  target.dispatchEvent(new Event("x"));
  equal(count, 1);
  target.addEventListener("x", null);

  // What is no object is none.
  for (const wrong of [1, "x", true, Symbol("s")]) {
    throws(() => new Request(url, any(wrong)), { name: "TypeError", message: "Request: the options are an object" });
    throws(() => new Response(null, any(wrong)), { name: "TypeError" });
    throws(() => structuredClone(1, any(wrong)), { name: "TypeError" });
    throws(() => new Blob([], any(wrong)), { name: "TypeError" });
    throws(() => new Event("x", any(wrong)), { name: "TypeError" });
    throws(() => new CustomEvent("x", any(wrong)), { name: "TypeError" });
    await rejects(fetch(url, any(wrong)), { name: "TypeError" });
  }
  // A member that is null is null, and undefined is the default.
  throws(() => new Headers(any(null)), { name: "TypeError" });
  equal([...new Headers(undefined)], []);
  throws(() => new Request(url, { headers: any(null) }), { name: "TypeError" });
  throws(() => new Response(null, { headers: any(null) }), { name: "TypeError" });
  throws(() => new Response(null, { status: any(null) }), { name: "RangeError" });
  equal(new Request(url, { method: undefined, headers: undefined, body: null, signal: null }).method, "GET");
  equal(new Request(url, { method: any(null) }).method, "null");
  equal(new Blob([], { type: any(null) }).type, "null");
  equal(new Blob([], { type: undefined }).type, "");
  throws(() => target.addEventListener("x", listener, { signal: any(null) }), { name: "TypeError" });
  throws(() => target.addEventListener("x", listener, { signal: any({}) }), { name: "TypeError" });
  for (const make of [() => new (any(Event))(), () => new (any(CustomEvent))(), () => any(structuredClone)()]) throws(make, { name: "TypeError" });
  equal(structuredClone(undefined), undefined);
  for (const wrong of [undefined, null, {}, [null], [{ aborted: true }]]) throws(() => AbortSignal.any(any(wrong)), { name: "TypeError" });
  equal(AbortSignal.any([]).aborted, false);
  for (const wrong of [undefined, NaN, -1, Infinity, 2 ** 53]) throws(() => AbortSignal.timeout(any(wrong)), { name: "TypeError" });
}
