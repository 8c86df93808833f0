import { CapabilityError, extension } from "stile";

const escape = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

export default extension({
  tools: {
    search_notes: {
      description: "Find the lines of Markdown files that contain some words",
      input: { type: "object", properties: { words: { type: "string", minLength: 1 } }, required: ["words"] },
      annotations: { readOnly: true },
      run: async ({ words }, env) => {
        const { matches } = await env.workspace.grep(new RegExp(escape(words), "i"), { include: "*.md" });
        return matches.map(({ path, line, text }) => ({ path, line, text }));
      },
    },
    outline: {
      description: "The headings of a Markdown file",
      input: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
      annotations: { readOnly: true },
      run: async ({ path }, env) => {
        let text: string;
        try {
          text = await env.workspace.read(path);
        } catch (error) {
          if (error instanceof CapabilityError && error.code === "not-found") throw new Error(`there is no file ${path}`);
          throw error;
        }
        const headings: { level: number; title: string }[] = [];
        for (const line of text.split("\n")) {
          const match = /^(#{1,6})\s+(.+?)\s*$/.exec(line);
          if (match) headings.push({ level: match[1].length, title: match[2] });
        }
        return headings;
      },
    },
  },
});
