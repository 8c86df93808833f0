// bindings:
import { equal, ok, rejects, throws } from "./assert";

export default async function (): Promise<void> {
  const response = new Response('{"a":1}', { status: 201, headers: { "x-a": "b" } });
  equal([response.status, response.ok, response.url, response.redirected, response.type], [201, true, "", false, "default"]);
  equal(response.headers.get("content-type"), "text/plain;charset=UTF-8");
  const copy = response.clone();
  equal(response.bodyUsed, false);
  equal(await response.json(), { a: 1 });
  equal(response.bodyUsed, true);
  await rejects(response.text(), { name: "TypeError", message: "read already" });
  throws(() => response.clone(), { name: "TypeError" });
  equal(await copy.text(), '{"a":1}', "a clone is read on its own");
  equal([copy.status, copy.headers.get("x-a")], [201, "b"]);

  equal(await new Response().text(), "");
  equal(await new Response(new Uint8Array([0xef, 0xbb, 0xbf, 0x68, 0xff])).text(), "h\ufffd");
  equal(await new Response("é").bytes(), new Uint8Array([0xc3, 0xa9]));
  equal((await new Response("é").arrayBuffer()).byteLength, 2);
  const form = new Response(new URLSearchParams({ a: "b c" }));
  equal([form.headers.get("content-type"), await form.text()], ["application/x-www-form-urlencoded;charset=UTF-8", "a=b+c"]);
  const blob = await new Response("x", { headers: { "content-type": "text/html" } }).blob();
  ok(blob instanceof Blob, "a Blob");
  equal([blob.type, blob.size, await blob.text()], ["text/html", 1, "x"]);
  equal(await Response.json([1]).json(), [1]);
  equal(Response.json({}).headers.get("content-type"), "application/json");
  equal(Response.error().status, 0);
  equal(Response.redirect("https://a/b").headers.get("location"), "https://a/b");
  for (const status of [0, 99, 600, NaN]) throws(() => new Response("", { status }), { name: "RangeError" });
  throws(() => new Response("x", { status: 204 }), { name: "TypeError" });
  await rejects(new Response("{").json(), { name: "SyntaxError" });

  const request = new Request("https://H/p?q", { method: "post", body: "hi", headers: { A: "1" } });
  equal([request.method, request.url, request.headers.get("a"), request.redirect], ["POST", "https://h/p?q", "1", "follow"]);
  equal(await request.clone().text(), "hi");
  const changed = new Request(request, { method: "PUT", body: "ho" });
  equal([changed.method, changed.url, await changed.text()], ["PUT", "https://h/p?q", "ho"]);
  equal(new Request("https://h", { method: "patch" }).method, "patch", "other methods are kept as they are");
  throws(() => new Request("/relative"), { name: "TypeError" });
  throws(() => new Request("https://h", { body: "x" }), { name: "TypeError", message: "GET" });
  throws(() => new Request("https://h", { method: "A B" }), { name: "TypeError" });
  for (const method of ["trace", "CONNECT", "Track"]) throws(() => new Request("https://h", { method }), { name: "TypeError", message: "never allowed" });
  throws(() => new Request("https://me:secret@h/"), { name: "TypeError", message: "user name" });
  equal(new Request("https://h/a@b?c@d").url, "https://h/a@b?c@d");

  // A request that is made from another one takes its body, and a clone does not.
  const source = new Request("https://h", { method: "POST", body: "once" });
  const clone = source.clone();
  equal([source.bodyUsed, await clone.text()], [false, "once"]);
  throws(() => new Request(source, { method: "TRACE" }), { name: "TypeError" });
  equal(source.bodyUsed, false, "a request that is not made takes nothing");
  const taken = new Request(source);
  equal([source.bodyUsed, await taken.text()], [true, "once"]);
  equal(await new Request(source, { body: "again" }).text(), "again");
  throws(() => new Request(source), { name: "TypeError", message: "read already" });
  const typed = new Response(new Blob(["x"], { type: "text/plain" }), { headers: { "content-type": "text/html" } });
  equal((await typed.blob()).type, "text/html");
  throws(() => ((typed as any).headers = 1), { name: "TypeError" });

  const parts = new Blob(["a", new Uint8Array([0x62]), new Blob(["c"])], { type: "Text/Plain" });
  equal([parts.size, parts.type, await parts.text(), await parts.slice(1, -1).text()], [3, "text/plain", "abc", "b"]);
  const bytes = await parts.bytes();
  bytes[0] = 0;
  equal(await parts.text(), "abc", "a Blob does not change");
  throws(() => new Blob("text" as any), { name: "TypeError" });
}
