// bindings: network, workspace
// input.site is what fetch.ts says.
import { equal, ok, rejects, throws } from "./assert";

async function all(stream: ReadableStream): Promise<any[]> {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

export default async function ({ site }: any, env: any): Promise<void> {
  const text = await fetch(`${site}/events`);
  ok(text.body instanceof ReadableStream, "there is one class of streams");
  equal([text.bodyUsed, text.body!.locked], [false, false]);
  equal((await all(text.body!.pipeThrough(new TextDecoderStream()))).join(""), "data: 0\n\ndata: 1\n\ndata: 2\n\n");
  ok(text.bodyUsed, "piping uses a body");
  await rejects(text.text(), { name: "TypeError" });

  const [a, b] = new Response("ab").body!.tee();
  equal([await new Response(a).text(), await new Response(b).text()], ["ab", "ab"]);
  const from = ReadableStream.from([new Uint8Array([104]), new Uint8Array([105])]);
  const made = new Response(from);
  ok(made.body === from, "a stream is the body itself");
  const copy = made.clone();
  equal([await made.text(), await copy.text(), made.bodyUsed], ["hi", "hi", true]);
  await rejects(new Response(ReadableStream.from(["text"])).text(), { name: "TypeError", message: "Uint8Array" });
  throws(() => new Response(from), { name: "TypeError" });

  const echo = await fetch(`${site}/echo`, { method: "POST", body: ReadableStream.from([new Uint8Array([120])]), duplex: "half" } as RequestInit);
  equal((await echo.json()).body, "x");
  const request = new Request(`${site}/echo`, { method: "POST", body: ReadableStream.from([new Uint8Array([121])]) });
  const other = new Request(request);
  ok(request.bodyUsed, "the other request took the body");
  equal((await (await fetch(other)).json()).body, "y");

  // Passes by on the host.
  const passed = await fetch(`${site}/echo`, { method: "POST", body: (await fetch(`${site}/large`)).body });
  equal((await passed.json()).body.length, 600_000);

  const byob = (await fetch(`${site}/large`)).body!.getReader({ mode: "byob" });
  const { value } = await byob.read(new Uint8Array(6));
  equal(new TextDecoder().decode(value), "large ");
  await byob.cancel();

  const blob = new Blob(["x".repeat(300_000)]);
  const pieces = await all(blob.stream());
  equal(pieces.map((p) => p.length), [262_144, 37_856]);
  const encoded = ReadableStream.from(["a\ud83d", "\ude00", "\ud83d"]).pipeThrough(new TextEncoderStream());
  equal(await new Response(encoded).text(), "a\u{1f600}\ufffd");

  const seen: string[] = [];
  await ReadableStream.from(["1", "2"]).pipeTo(new WritableStream({ write: (chunk) => void seen.push(chunk) }, new CountQueuingStrategy({ highWaterMark: 1 })));
  equal(seen, ["1", "2"]);
  const aborted = new AbortController();
  const endless = new ReadableStream({ pull: (c) => c.enqueue("x") });
  const piping = endless.pipeTo(new WritableStream(), { signal: aborted.signal });
  aborted.abort();
  await rejects(piping, { name: "AbortError" });

  // A cancelled body ends its exchange.
  const hanging = await fetch(`${site}/events?hang`);
  for await (const piece of hanging.body!) if (piece.length) break;
  await rejects(hanging.text(), { name: "TypeError" });

  equal(await (await fetch("data:text/plain;charset=utf-8,a%20b%C3%A9")).text(), "a bé");
  const data = await fetch("data:image/png;base64,/wBB");
  equal([data.headers.get("content-type"), [...(await data.bytes())]], ["image/png", [255, 0, 65]]);
  await rejects(fetch("data:x"), { name: "TypeError" });
  await rejects(fetch("data:;base64,***"), { name: "TypeError" });
  const large = "large ".repeat(100_000);
  await env.workspace.write("a", (await fetch(`${site}/large`)).body);
  await env.workspace.write("b", await fetch(`${site}/large`));
  await env.workspace.append("b", new Response("end"));
  await env.workspace.write("c", ReadableStream.from(["1", "2"]).pipeThrough(new TextEncoderStream()));
  await env.workspace.write("d", ReadableStream.from([]));
  await env.workspace.write("e", new Response(new Blob(["e"]).stream()));
  equal([await env.workspace.read("a"), await env.workspace.read("b")], [large, large + "end"]);
  equal([await env.workspace.read("c"), await env.workspace.read("d"), await env.workspace.read("e")], ["12", "", "e"]);
  const read = new Response("x");
  await read.text();
  await rejects(env.workspace.write("x", read), { name: "TypeError", message: "read already" });
  await rejects(env.workspace.write("x", read.body), { name: "TypeError" });
  const failing = new ReadableStream({ pull: (c) => c.error(new Error("broken")) });
  await rejects(env.workspace.write("x", failing), { name: "Error", message: "broken" });
}
