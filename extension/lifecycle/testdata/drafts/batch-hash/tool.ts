import { extension } from "stile";

export default extension({
  tools: {
    hash_all: {
      description: "SHA-256 of each text, in hexadecimal",
      input: { type: "object", properties: { texts: { type: "array", items: { type: "string" }, maxItems: 10000 } }, required: ["texts"] },
      annotations: { readOnly: true, idempotent: true },
      run: async ({ texts }, env) => {
        const hashes: string[] = [];
        for (const [i, text] of texts.entries()) {
          const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
          hashes.push(new Uint8Array(digest).toHex());
          await env.console.progress(i + 1, texts.length, "hashing");
        }
        return hashes;
      },
    },
  },
});
