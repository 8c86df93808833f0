// package: hono@4.13.19
// input: {"x": "hi"}
// output: [200,{"hello":"ada","q":"1"},"text/plain;charset=UTF-8","hi",404]
import { extension } from "stile";
import { Hono } from "hono";

export default extension({
  tools: {
    call: {
      description: "Calls hono.",
      run: async (input) => {
        const app = new Hono();
        app.get("/hello/:name", (c) => c.json({ hello: c.req.param("name"), q: c.req.query("q") }));
        app.post("/echo", async (c) => c.text((await c.req.json()).x));
        const a = await app.request("/hello/ada?q=1");
        const b = await app.request("/echo", { method: "POST", body: JSON.stringify(input) });
        return [a.status, await a.json(), b.headers.get("content-type"), await b.text(), (await app.request("/no")).status];
      },
    },
  },
});
