// bindings:
import { equal, ok, throws } from "./assert";

const bytes = (...values: number[]) => new Uint8Array(values);

export default function (): void {
  const encoder = new TextEncoder();
  equal(encoder.encoding, "utf-8");
  equal(encoder.encode(), bytes());
  equal([...encoder.encode("aé€😀")], [0x61, 0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80]);
  equal([...encoder.encode("\ud800x\udc00")], [0xef, 0xbf, 0xbd, 0x78, 0xef, 0xbf, 0xbd], "lone surrogates");
  const target = new Uint8Array(5);
  equal(encoder.encodeInto("a😀b", target), { read: 3, written: 5 });
  equal(encoder.encodeInto("😀😀", target), { read: 2, written: 4 }, "no half characters");

  const decoder = new TextDecoder();
  equal(decoder.encoding, "utf-8");
  equal(decoder.decode(), "");
  equal(decoder.decode(encoder.encode("aé€😀")), "aé€😀");
  equal(decoder.decode(bytes(0xef, 0xbb, 0xbf, 0x61)), "a", "byte order mark");
  equal(new TextDecoder("utf8", { ignoreBOM: true }).decode(bytes(0xef, 0xbb, 0xbf, 0x61)), "\ufeffa");
  equal(decoder.decode(encoder.encode("x\ufeffy")), "x\ufeffy", "only the first is a mark");
  // Each row of bytes becomes one replacement for each maximal part, as the Encoding Standard says.
  const malformed: [number[], string][] = [
    [[0x80], "\ufffd"],
    [[0xc0, 0x80], "\ufffd\ufffd"],
    [[0xc3], "\ufffd"],
    [[0xe2, 0x82], "\ufffd"],
    [[0xe2, 0x82, 0x61], "\ufffda"],
    [[0xf0, 0x9f, 0x98], "\ufffd"],
    [[0xf0, 0x80, 0x80, 0x80], "\ufffd\ufffd\ufffd\ufffd"],
    [[0xed, 0xa0, 0x80], "\ufffd\ufffd\ufffd"],
    [[0xf4, 0x90, 0x80, 0x80], "\ufffd\ufffd\ufffd\ufffd"],
    [[0xf8, 0xff], "\ufffd\ufffd"],
  ];
  for (const [input, text] of malformed) {
    equal(decoder.decode(bytes(...input)), text, input.join());
    throws(() => new TextDecoder("utf-8", { fatal: true }).decode(bytes(...input)), { name: "TypeError" });
  }

  const piecewise = new TextDecoder();
  let text = "";
  for (const byte of encoder.encode("\ufeffaé€😀")) text += piecewise.decode(bytes(byte), { stream: true });
  equal(text + piecewise.decode(), "aé€😀", "byte by byte");
  piecewise.decode(bytes(0xe2, 0x82), { stream: true });
  equal(piecewise.decode(bytes(0xac)), "€");
  piecewise.decode(bytes(0xe2), { stream: true });
  equal(piecewise.decode(), "\ufffd", "an end in the middle");
  equal(piecewise.decode(bytes(0x61)), "a", "and a fresh start");

  const long = "0123456789€".repeat(5000);
  ok(decoder.decode(encoder.encode(long)) === long, "55,000 characters");
  equal(decoder.decode(encoder.encode(long).buffer).length, long.length, "an ArrayBuffer");
  equal(decoder.decode(new DataView(bytes(0x78, 0x61, 0x62).buffer, 1, 1)), "a", "a part of a buffer");

  equal(new TextDecoder("latin1").encoding, "windows-1252");
  equal(new TextDecoder(" ISO-8859-1 ").decode(bytes(0x80, 0x9f, 0xe9)), "€Ÿé");
  equal(new TextDecoder("utf-16").encoding, "utf-16le");
  equal(new TextDecoder("utf-16le").decode(bytes(0xff, 0xfe, 0x61, 0, 0x3d, 0xd8, 0x00, 0xde)), "a😀");
  equal(new TextDecoder("utf-16le").decode(bytes(0x3d, 0xd8, 0x61, 0, 0x62)), "\ufffda\ufffd");
  const wide = new TextDecoder("utf-16le");
  text = "";
  for (const byte of [0x3d, 0xd8, 0x00, 0xde]) text += wide.decode(bytes(byte), { stream: true });
  equal(text + wide.decode(), "😀");
  equal(`${new TextDecoder()} ${Object.keys(TextEncoder.prototype)}`, "[object TextDecoder] encoding,encode,encodeInto");
  throws(() => new TextDecoder("\vutf-8"), { name: "RangeError" });
  throws(() => new TextEncoder().encodeInto("", new DataView(new ArrayBuffer(1)) as any), { name: "TypeError" });
  throws(() => new TextDecoder("klingon"), { name: "RangeError", message: "klingon" });
  throws(() => decoder.decode("text" as any), { name: "TypeError" });
}
