// bindings: network, clock
// input.site is what `network` may reach with GET and POST: it answers /echo with the request as JSON {method, headers, body}, /bytes with the
// four bytes ff 00 ef 0a as image/png, /large with 600,000 bytes of text, /events with three events that each take 9 bytes, of which the last never comes
// with ?hang, /moved with a redirect to /echo, and /slow never.
import { equal, ok, rejects } from "./assert";

export default async function ({ site }: any, env: any): Promise<void> {
  const response = await fetch(`${site}/echo`, { method: "POST", headers: { "x-a": "1" }, body: JSON.stringify({ a: "é" }) });
  equal([response.status, response.ok, response.url], [200, true, `${site}/echo`]);
  const { method, headers, body } = await response.json();
  equal([method, headers["x-a"], headers["content-type"], body], ["POST", "1", "text/plain;charset=UTF-8", '{"a":"é"}']);

  const echoed = async (init: any) => (await (await env.network.fetch(new Request(`${site}/echo`, init))).json()).body;
  equal(await echoed({}), "");
  equal(await echoed({ method: "POST", body: new Uint8Array([0x68, 0x69]) }), "hi");
  equal(await echoed({ method: "POST", body: new Blob(["blob"]) }), "blob");
  equal(await echoed({ method: "POST", body: new URLSearchParams({ q: "a b" }) }), "q=a+b");

  const image = await fetch(new URL("/bytes", site));
  const copy = image.clone();
  const blob = await image.blob();
  equal([blob.size, blob.type, [...(await blob.bytes())]], [4, "image/png", [0xff, 0, 0xef, 0x0a]]);
  equal(await copy.text(), "\ufffd\0\ufffd\n", "what is not UTF-8 is replaced");
  const sent = await (await fetch(`${site}/bytes`)).blob();
  await echoed({ method: "POST", body: sent });

  const moved = await fetch(`${site}/moved`);
  equal([moved.redirected, moved.url], [true, `${site}/echo`]);
  equal((await fetch(`${site}/moved`, { redirect: "manual" })).status, 302);

  const denied = await rejects(fetch("https://other.example/"), { name: "DeniedError", code: "denied" });
  ok(denied.denial.operation.includes("other.example"), "the denial says what was asked");
  await rejects(fetch(`${site}/echo`, { method: "DELETE" }), { name: "DeniedError" });
  const { protocol, hostname, port } = new URL(site);
  const narrow = env.network.narrow([{ scheme: protocol.slice(0, -1), host: hostname, port: Number(port), path: "/bytes" }]);
  equal((await narrow.fetch(`${site}/bytes`)).status, 200);
  await rejects(narrow.fetch(`${site}/echo`), { name: "DeniedError" });
  equal(narrow.rules()[0].path, "/bytes");

  const both = await Promise.all([fetch(`${site}/echo`), fetch(`${site}/bytes`)]);
  equal(both.map(({ status }) => status), [200, 200]);
  await rejects(fetch(`${site}/echo`, { signal: AbortSignal.abort("no") }).catch((reason) => Promise.reject({ message: reason })), { message: "no" });
  const controller = new AbortController();
  const slow = fetch(`${site}/slow`, { signal: controller.signal });
  setTimeout(() => controller.abort(), 5);
  await rejects(slow, { name: "AbortError" });
  await rejects(fetch(`${site}/slow`, { signal: AbortSignal.timeout(5) }), { name: "TimeoutError" });
  await rejects(fetch("/relative"), { name: "TypeError" });
}
