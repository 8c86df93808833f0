import { extension } from "stile";

const name = { type: "string", pattern: "^[a-z0-9-]{1,40}$" } as const;

export default extension({
  tools: {
    save_link: {
      description: "Save a link under a short name that is free",
      input: { type: "object", properties: { name, url: { type: "string" } }, required: ["name", "url"] },
      run: async ({ name, url }, env) => {
        if (!URL.canParse(url)) throw new Error(`${url} is not a URL`);
        if (!(await env.links.compareAndSet(`url/${name}`, undefined, url))) throw new Error(`the name ${name} is taken`);
        return { name, url };
      },
    },
    open_link: {
      description: "The link of a short name, and how often it was used",
      input: { type: "object", properties: { name }, required: ["name"] },
      run: async ({ name }, env) => {
        const url = await env.links.get(`url/${name}`);
        if (!url) throw new Error(`there is no link ${name}`);
        return { url, uses: await env.links.increment(`uses/${name}`) };
      },
    },
    forget_link: {
      description: "Forget a link. Returns whether there was one",
      input: { type: "object", properties: { name }, required: ["name"] },
      annotations: { destructive: true, idempotent: true },
      run: async ({ name }, env) => {
        await env.links.delete(`uses/${name}`);
        return env.links.delete(`url/${name}`);
      },
    },
  },
});
