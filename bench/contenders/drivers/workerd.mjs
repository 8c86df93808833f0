// Loads the code in a request as a worker of its own, without a network, and has it answer. With an id the worker is kept.
const shell = `
export default { fetch: async (request) => new Response(JSON.stringify(tool(await request.json()))) };`;

export default {
  async fetch(request, env) {
    const { source, input, id } = await request.json();
    const code = { compatibilityDate: "2026-01-01", mainModule: "tool.js", modules: { "tool.js": source + shell }, globalOutbound: null };
    const worker = id ? env.LOADER.get(id, () => code) : env.LOADER.load(code);
    return worker.getEntrypoint().fetch("http://tool/", { method: "POST", body: input });
  },
};
