import { extension } from "stile";

const text = { type: "string" } as const;

export default extension({
  tools: {
    sha256: {
      description: "The SHA-256 digest of a text in hexadecimal",
      input: { type: "object", properties: { text }, required: ["text"] },
      annotations: { readOnly: true },
      run: async ({ text }) => {
        const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
        return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
      },
    },
    base64: {
      description: "Encode a text as base64, or decode it",
      input: { type: "object", properties: { text, decode: { type: "boolean" } }, required: ["text"] },
      annotations: { readOnly: true },
      run: ({ text, decode }) => {
        if (decode) return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
        return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
      },
    },
    random_name: {
      description: "A random name of some letters",
      input: { type: "object", properties: { length: { type: "integer", minimum: 1, maximum: 64 } } },
      run: ({ length = 8 }) => Array.from(crypto.getRandomValues(new Uint8Array(length)), (b) => String.fromCharCode(97 + (b % 26))).join(""),
    },
  },
});
