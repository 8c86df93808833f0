import { extension } from "stile";

export default extension({
  tools: {
    download: {
      description: "Download a file into the workspace",
      input: { type: "object", properties: { path: { type: "string", pattern: "^/" } }, required: ["path"] },
      run: async ({ path }, env) => {
        const response = await fetch(new URL(path, "https://files.example.com"));
        if (!response.ok || !response.body) throw new Error(`the server answered ${response.status}`);
        const name = path.split("/").pop() || "file";
        const saved = `downloads/${name}`;
        await env.workspace.write(saved, response.body);
        const { size } = await env.workspace.stat(saved);
        return { saved, bytes: size };
      },
    },
  },
});
