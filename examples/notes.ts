// Keeps notes in a workspace: one directory, whose name this code does not know and cannot leave.
import { CapabilityError, extension, type Workspace } from "stile";

export default extension({
  tools: {
    add_note: {
      description: "Add a note under a title; a title that exists already gets one more line",
      input: {
        type: "object",
        properties: { title: { type: "string", pattern: "^[a-z0-9-]{1,64}$" }, text: { type: "string", maxLength: 10_000 } },
        required: ["title", "text"],
      },
      run: async ({ title, text }, { notes }) => {
        const file = `${title}.md`;
        const before = await readIfThere(notes, file);
        await notes.write(file, `${before}- ${text}\n`);
        return { title, lines: before.split("\n").length };
      },
    },
    list_notes: {
      description: "List the notes with their sizes in bytes",
      annotations: { readOnly: true },
      run: async (_, { notes }) => {
        const { entries } = await notes.list();
        return entries.map(({ name, size }) => ({ title: name.replace(/\.md$/, ""), size }));
      },
    },
    read_note: {
      description: "Read a note",
      input: { type: "object", properties: { title: { type: "string" } }, required: ["title"] },
      annotations: { readOnly: true },
      run: ({ title }, { notes }) => notes.read(`${title}.md`),
    },
  },
});

async function readIfThere(notes: Workspace, file: string): Promise<string> {
  try {
    return await notes.read(file);
  } catch (error) {
    if (error instanceof CapabilityError && error.code === "not-found") return "";
    throw error;
  }
}
