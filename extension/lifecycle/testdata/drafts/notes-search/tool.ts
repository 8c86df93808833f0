import { extension } from "stile";

const MOST = 50;

export default extension({
  tools: {
    search_notes: {
      description: "Searches all markdown files of the workspace for a phrase, and returns file, line number and line of at most 50 places.",
      input: {
        type: "object",
        properties: {
          phrase: { type: "string", minLength: 1, description: "The exact text to look for, upper and lower case as given" },
        },
        required: ["phrase"],
      },
      annotations: { readOnly: true },
      run: async ({ phrase }, env) => {
        // grep takes a pattern, and the phrase is meant as it stands
        const pattern = phrase.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
        const matches: { file: string; line: number; text: string }[] = [];
        let more = false;
        let cursor: string | undefined = undefined;
        do {
          const page: Awaited<ReturnType<typeof env.workspace.grep>> = await env.workspace.grep(pattern, { include: "**/*.md", cursor });
          for (const m of page.matches) {
            if (matches.length === MOST) {
              more = true;
              break;
            }
            matches.push({ file: m.path, line: m.line, text: m.text });
          }
          cursor = page.cursor;
        } while (cursor && !more);
        return { matches, more };
      },
    },
  },
});
