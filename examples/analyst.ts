// Runs code that a model writes: it may read the notes, and nothing else. The person who approved this extension has not seen that code, so
// the manifest says which bindings it may have, and the host holds it to them.
import { extension, type CodeError } from "stile";

export default extension({
  tools: {
    analyse: {
      description:
        "Answer a question about the notes with code: the body of an async function in TypeScript, in which env.notes.find, read and grep read the notes, and console.log logs. What it returns is the result",
      input: {
        type: "object",
        properties: { code: { type: "string", description: "such as: return (await env.notes.read('today.md')).split('\\n').length" } },
        required: ["code"],
      },
      annotations: { readOnly: true },
      run: async ({ code }, { runner, notes }) => {
        try {
          const { result, log } = await runner.execute(code, { env: { notes: notes.readOnly() } });
          return { result, log: log.map(({ text }) => text) };
        } catch (error) {
          // The model learns what was wrong with its code, and tries again.
          const { message, log = [] } = error as CodeError;
          return { problem: message, log: log.map(({ text }) => text) };
        }
      },
    },
  },
});
