import { extension } from "stile";

const CRC = new Uint32Array(256);
for (let n = 0; n < 256; n++) {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  CRC[n] = c >>> 0;
}

function crc32(bytes: number[]): number {
  let c = 0xffffffff;
  for (const b of bytes) c = CRC[(c ^ b) & 255]! ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}

function adler32(bytes: number[]): number {
  let a = 1;
  let b = 0;
  for (const x of bytes) {
    a = (a + x) % 65521;
    b = (b + a) % 65521;
  }
  return ((b << 16) | a) >>> 0;
}

function u32(n: number): number[] {
  return [(n >>> 24) & 255, (n >>> 16) & 255, (n >>> 8) & 255, n & 255];
}

function chunk(type: string, data: number[]): number[] {
  const body = [...type].map((c) => c.charCodeAt(0)).concat(data);
  return u32(data.length).concat(body, u32(crc32(body)));
}

// zlib with one stored block, which holds up to 65535 bytes
function zlib(data: number[]): number[] {
  const n = data.length;
  if (n > 65535) throw new Error("the image is too large");
  return [0x78, 0x01, 1, n & 255, n >>> 8, ~n & 255, (~n >>> 8) & 255].concat(data, u32(adler32(data)));
}

// white, blue, grey, red
const PALETTE = [255, 255, 255, 37, 99, 235, 110, 110, 110, 220, 38, 38];

function png(pixels: Uint8Array, width: number, height: number): number[] {
  const raw: number[] = [];
  for (let y = 0; y < height; y++) {
    raw.push(0);
    for (let x = 0; x < width; x += 4) {
      let byte = 0;
      for (let i = 0; i < 4; i++) byte = (byte << 2) | (x + i < width ? pixels[y * width + x + i]! : 0);
      raw.push(byte);
    }
  }
  return [137, 80, 78, 71, 13, 10, 26, 10].concat(
    chunk("IHDR", [...u32(width), ...u32(height), 2, 3, 0, 0, 0]),
    chunk("PLTE", PALETTE),
    chunk("IDAT", zlib(raw)),
    chunk("IEND", []),
  );
}

export default extension({
  tools: {
    bar_chart: {
      description: "Draws a small bar chart of numbers, as a PNG image.",
      input: {
        type: "object",
        properties: {
          numbers: { type: "array", items: { type: "number" }, maxItems: 60, description: "One bar for each; negative ones go down, in red" },
          width: { type: "integer", minimum: 60, maximum: 400, default: 160 },
          height: { type: "integer", minimum: 20, maximum: 300, default: 100 },
        },
        required: ["numbers"],
      },
      annotations: { readOnly: true, idempotent: true },
      run: async ({ numbers, width = 160, height = 100 }) => {
        if (numbers.length === 0) throw new Error("a chart needs at least one number");
        const max = Math.max(0, ...numbers);
        const min = Math.min(0, ...numbers);
        const span = max - min || 1;
        const row = (v: number) => Math.round(((max - v) / span) * (height - 1));
        const pixels = new Uint8Array(width * height);
        const zero = row(0);
        numbers.forEach((v, i) => {
          const left = Math.floor((i * width) / numbers.length);
          const right = Math.floor(((i + 1) * width) / numbers.length);
          const end = right - left > 2 ? right - 1 : right;
          const top = Math.min(row(v), zero);
          const bottom = Math.max(row(v), zero);
          for (let y = top; y <= bottom; y++) pixels.fill(v < 0 ? 3 : 1, y * width + left, y * width + end);
        });
        pixels.fill(2, zero * width, (zero + 1) * width);
        const data = btoa(png(pixels, width, height).map((b) => String.fromCharCode(b)).join(""));
        return { content: [{ type: "image", mimeType: "image/png", data }] };
      },
    },
  },
});
