import { extension } from "stile";

let text = "";
for (let i = 0; text.length < 1 << 20; i++) text += `${(i * 7919) % 10007} bottles of ${i % 313} kinds, `;
const data = new TextEncoder().encode(text);
text = "";

export default extension({
  tools: {
    passes: {
      description: "Stores a body",
      input: { type: "object", properties: { url: { type: "string" } }, required: ["url"] },
      run: async ({ url }, env) => {
        await env.files.write("body", await env.network.fetch(url));
      },
    },
    iterates: {
      description: "Iterates over a body",
      input: { type: "object", properties: { url: { type: "string" } }, required: ["url"] },
      run: async ({ url }, env) => {
        let size = 0;
        for await (const chunk of (await env.network.fetch(url)).body!) size += chunk.length;
        if (size !== 50 << 20) throw new Error(`${size} bytes`);
      },
    },
    compresses: {
      description: "Compresses and decompresses",
      input: { type: "object" },
      run: async () => {
        const packed = new Blob([data]).stream().pipeThrough(new CompressionStream("gzip"));
        const size = (await new Response(packed.pipeThrough(new DecompressionStream("gzip"))).bytes()).length;
        if (size !== data.length) throw new Error(`${size} bytes`);
      },
    },
  },
});
