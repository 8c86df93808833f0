// bindings:
import { equal, ok, rejects, throws } from "./assert";

type Bytes = Uint8Array<ArrayBuffer>;

const bytesOf = (stream: ReadableStream<Bytes>) => new Response(stream).bytes();
const through = (bytes: Bytes, pair: any) => bytesOf(new Blob([bytes]).stream().pipeThrough(pair));

export default async function (): Promise<void> {
  const text = new TextEncoder().encode("hello ".repeat(2_000));
  for (const format of ["gzip", "deflate", "deflate-raw"] as const) {
    const small = await through(text, new CompressionStream(format));
    ok(small.length < 200, "it is smaller");
    equal(new TextDecoder().decode(await through(small, new DecompressionStream(format))), "hello ".repeat(2_000));
    const empty = await through(new Uint8Array(0), new CompressionStream(format));
    equal((await through(empty, new DecompressionStream(format))).length, 0);

    for (const [what, bad] of Object.entries({
      cut: small.slice(0, -1), none: new Uint8Array(0), longer: new Uint8Array([...small, 0]), twice: new Uint8Array([...small, ...small]), other: text,
    })) await rejects(through(bad, new DecompressionStream(format)), { name: "TypeError", message: "DecompressionStream" }, what);
    if (format !== "deflate-raw") {
      const wrong = small.slice();
      wrong[wrong.length - (format === "gzip" ? 5 : 1)]! ^= 1; // the checksum
      await rejects(through(wrong, new DecompressionStream(format)), { name: "TypeError" });
    }
  }
  throws(() => new CompressionStream("br" as any), { name: "TypeError", message: "deflate-raw" });
  throws(() => new CompressionStream("toString" as any), { name: "TypeError" });
  const known = Uint8Array.from(atob("H4sIAAAAAAAAA0tMSgYAwkEkNQMAAAA="), (c) => c.charCodeAt(0));
  equal(new TextDecoder().decode(await through(known, new DecompressionStream("gzip"))), "abc");

  // A bomb of 100 MB, each of them in 1 KB, is read piece by piece: what nobody reads is not made, and a call has 64 MiB.
  const megabyte = await through(
    Uint8Array.from(atob("eNp7c9CQkYGB4dCCr/65HPELGEbBKBgFIw7YMTMw/P8PABHRCDk="), (c) => c.charCodeAt(0)),
    new DecompressionStream("deflate"),
  );
  const bomb = new Uint8Array(100 * megabyte.length);
  for (let at = 0; at < bomb.length; at += megabyte.length) bomb.set(megabyte, at);
  const reader = new Blob([bomb]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  equal((await reader.read()).value!.length, 262_144);
  for (let i = 0; i < 1_000; i++) await null;
  await reader.cancel();
  await rejects(bytesOf(ReadableStream.from(["text"]).pipeThrough(new CompressionStream("gzip") as any)), { name: "TypeError" });
}
