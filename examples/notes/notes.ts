// Searches and edits notes in a workspace, and posts a summary over http. The same tools in Go are in go/.
import { extension } from "stile";

const title = { type: "string", pattern: "^[a-z0-9-]{1,64}$" } as const;

export default extension({
  tools: {
    add_note: {
      description: "Add a line to the note of a title",
      input: { type: "object", properties: { title, text: { type: "string" } }, required: ["title", "text"], additionalProperties: false },
      run: async ({ title, text }, { notes }) => {
        await notes.append(`${title}.md`, `${text}\n`);
        return { title };
      },
    },
    search_notes: {
      description: "Find lines of notes by a regular expression",
      input: { type: "object", properties: { pattern: { type: "string" } }, required: ["pattern"], additionalProperties: false },
      annotations: { readOnly: true },
      run: async ({ pattern }, { notes }) => {
        const { matches } = await notes.grep(pattern, { include: ["*.md"], limit: 100 });
        return matches.map(({ path, line, text }) => ({ title: path.replace(/\.md$/, ""), line, text }));
      },
    },
    edit_note: {
      description: "Replace a text that a note has exactly once",
      input: {
        type: "object",
        properties: { title, old: { type: "string" }, new: { type: "string" } },
        required: ["title", "old", "new"],
        additionalProperties: false,
      },
      run: async (input, { notes }) => {
        await notes.edit(`${input.title}.md`, [{ old: input.old, new: input.new }]);
        return notes.read(`${input.title}.md`);
      },
    },
    post_summary: {
      description: "Post the titles and sizes of all notes to a URL",
      input: { type: "object", properties: { url: { type: "string" } }, required: ["url"], additionalProperties: false },
      run: async ({ url }, { notes, site }) => {
        const { entries } = await notes.list();
        const body = entries.map(({ name, size }) => `${name.replace(/\.md$/, "")}: ${size}\n`).join("");
        const response = await site.fetch(url, { method: "POST", body });
        return { status: response.status, answer: await response.text() };
      },
    },
  },
});
