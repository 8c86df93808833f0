// package: openai@6.49.0
// input: {"model": "m"}
// output: ["hi",[["POST","https://api.example.com/v1/chat/completions","m"]]]
import { extension } from "stile";
import OpenAI from "openai";

export default extension({
  tools: {
    call: {
      description: "Calls openai.",
      run: async (input) => {
        const seen = [];
        const fetch = async (url, init) => {
          seen.push([init.method, String(url), JSON.parse(init.body).model]);
          return new Response(JSON.stringify({ id: "1", choices: [{ index: 0, message: { role: "assistant", content: "hi" } }] }), { headers: { "content-type": "application/json" } });
        };
        const client = new OpenAI({ apiKey: "k", baseURL: "https://api.example.com/v1", maxRetries: 0, fetch });
        const answer = await client.chat.completions.create({ model: input.model, messages: [{ role: "user", content: "hello" }] });
        return [answer.choices[0].message.content, seen];
      },
    },
  },
});
