import { extension } from "stile";
import { deflateSync } from "node:zlib";

const HEIGHT = 8;
const input = {
  type: "object",
  properties: { values: { type: "array", items: { type: "number" }, minItems: 1, maxItems: 500 } },
  required: ["values"],
} as const;

const table = Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c >>> 0;
});

function crc(bytes: Uint8Array): number {
  let c = 0xffffffff;
  for (const b of bytes) c = table[(c ^ b) & 0xff]! ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}

function chunk(type: string, data: Uint8Array): Uint8Array {
  const out = new Uint8Array(12 + data.length);
  const view = new DataView(out.buffer);
  view.setUint32(0, data.length);
  out.set(new TextEncoder().encode(type), 4);
  out.set(data, 8);
  view.setUint32(8 + data.length, crc(out.subarray(4, 8 + data.length)));
  return out;
}

function png(values: readonly number[]): Blob {
  const least = Math.min(...values);
  const range = Math.max(...values) - least || 1;
  const rows = new Uint8Array(HEIGHT * (values.length + 1));
  values.forEach((value, x) => {
    const top = HEIGHT - 1 - Math.round(((value - least) / range) * (HEIGHT - 1));
    for (let y = 0; y < HEIGHT; y++) rows[y * (values.length + 1) + 1 + x] = y < top ? 255 : 0;
  });
  const header = new Uint8Array(13);
  const view = new DataView(header.buffer);
  view.setUint32(0, values.length);
  view.setUint32(4, HEIGHT);
  header.set([8, 0, 0, 0, 0], 8);
  const signature = new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10]);
  return new Blob([signature, chunk("IHDR", header), chunk("IDAT", deflateSync(rows)), chunk("IEND", new Uint8Array())], { type: "image/png" });
}

export default extension({
  tools: {
    draw: { description: "A picture of numbers, one pixel a number", input, run: async ({ values }) => png(values) },
    describe: {
      description: "The size of the picture",
      input,
      run: async ({ values }) => {
        const bytes = await png(values).arrayBuffer();
        const view = new DataView(bytes);
        return { width: view.getUint32(16), height: view.getUint32(20) };
      },
    },
  },
});
