import { CapabilityError, extension, type Env } from "stile";

const file = (day: string) => `/${day}.md`;

async function entries(env: Env, day: string): Promise<string[]> {
  try {
    const text = await env.journal.read(file(day));
    return text.split("\n").filter((line) => line.startsWith("- ")).map((line) => line.slice(2));
  } catch (error) {
    if (error instanceof CapabilityError && error.code === "not-found") return [];
    throw error;
  }
}

export default extension({
  tools: {
    write_entry: {
      description: "Add an entry to the journal of today",
      input: { type: "object", properties: { text: { type: "string", minLength: 1 } }, required: ["text"] },
      run: async ({ text }, env) => {
        const now = new Date().toISOString();
        const day = now.slice(0, 10);
        await env.journal.append(file(day), `- ${now.slice(11, 16)} ${text.replaceAll("\n", " ")}\n`);
        return { path: file(day), entries: (await entries(env, day)).length };
      },
    },
    read_day: {
      description: "The entries of a day",
      input: { type: "object", properties: { day: { type: "string", format: "date" } }, required: ["day"] },
      annotations: { readOnly: true },
      run: ({ day }, env) => entries(env, day),
    },
    days: {
      description: "The days that have entries",
      annotations: { readOnly: true },
      run: async (_, env) => {
        const { entries } = await env.journal.list();
        return entries.map(({ name }) => name).filter((name) => /^\d{4}-\d\d-\d\d\.md$/.test(name)).map((name) => name.slice(0, 10)).sort();
      },
    },
  },
});
