// package: axios@1.21.1
// input: {"q": "1 2"}
// output: [200,{"x":1},[["GET","https://api.example.com/a?q=1+2"]]]
import { extension } from "stile";
import axios from "axios";

export default extension({
  tools: {
    call: {
      description: "Calls axios.",
      run: async (input) => {
        const seen = [];
        const fetch = async (request, init) => {
          const r = new Request(request, init);
          seen.push([r.method, r.url]);
          return new Response(JSON.stringify({ x: 1 }), { headers: { "content-type": "application/json" } });
        };
        const client = axios.create({ baseURL: "https://api.example.com", adapter: "fetch", env: { fetch, Request, Response } });
        const { data, status } = await client.get("/a", { params: input });
        return [status, data, seen];
      },
    },
  },
});
