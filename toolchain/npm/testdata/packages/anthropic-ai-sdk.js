// package: @anthropic-ai/sdk@1.12.0
// input: {"model": "m"}
// output: ["hi",[["POST","https://api.example.com/v1/messages","m"]]]
import { extension } from "stile";
import Anthropic from "@anthropic-ai/sdk";

export default extension({
  tools: {
    call: {
      description: "Calls @anthropic-ai/sdk.",
      run: async (input) => {
        const seen = [];
        const fetch = async (url, init) => {
          seen.push([init.method, String(url), JSON.parse(init.body).model]);
          return new Response(JSON.stringify({ id: "1", type: "message", role: "assistant", content: [{ type: "text", text: "hi" }] }), { headers: { "content-type": "application/json" } });
        };
        const client = new Anthropic({ apiKey: "k", baseURL: "https://api.example.com", maxRetries: 0, fetch });
        const answer = await client.messages.create({ model: input.model, max_tokens: 10, messages: [{ role: "user", content: "hello" }] });
        return [answer.content[0].text, seen];
      },
    },
  },
});
