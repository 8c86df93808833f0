// Searches and edits notes in a workspace, and posts a summary over http.
import { get as http } from "stile:capability/http@0.1.0";
import { get as workspace } from "stile:capability/workspace@0.1.0";

const title = { type: "string", pattern: "^[a-z0-9-]{1,64}$" };
const text = { type: "string" };
const maxBody = 8n << 20n;

const all = {
  add_note: {
    description: "Add a line to the note of a title",
    properties: { title, text },
    run({ title, text }, env) {
      workspace(env, "notes").append(`${title}.md`, `${text}\n`);
      return { title };
    },
  },
  search_notes: {
    description: "Find lines of notes by a regular expression",
    properties: { pattern: text },
    readOnly: true,
    run({ pattern }, env) {
      const { matches } = workspace(env, "notes").grep(pattern, { include: ["*.md"], exclude: [], context: 0 }, 100);
      return matches.map(({ path, line, text }) => ({ title: path.replace(/\.md$/, ""), line, text }));
    },
  },
  edit_note: {
    description: "Replace a text that a note has exactly once",
    properties: { title, old: text, new: text },
    run(input, env) {
      const notes = workspace(env, "notes");
      notes.edit(`${input.title}.md`, [{ old: input.old, new: input.new }]);
      return notes.read(`${input.title}.md`);
    },
  },
  post_summary: {
    description: "Post the titles and sizes of all notes to a URL",
    properties: { url: text },
    run({ url }, env) {
      const { entries } = workspace(env, "notes").list("", 1000);
      const body = entries.map(({ name, status }) => `${name.replace(/\.md$/, "")}: ${status.size}\n`).join("");
      const request = { method: "POST", url, headers: [], content: { tag: "text", val: body }, redirect: "follow" };
      const exchange = http(env, "site").start(request);
      exchange.subscribe({ tag: "whole" }).block();
      return { status: exchange.head().status, answer: exchange.text(maxBody) };
    },
  },
};

/** What the host is told of an error. A denial stays one. */
function refused(error) {
  const { tag, val } = error?.payload ?? {};
  if (tag === "denied") return { tag, val };
  if (tag) return { tag: "failed", val: { name: "CapabilityError", message: `${tag}: ${val}`, stack: error.stack ?? "" } };
  return { tag: "failed", val: { name: error?.name ?? "Error", message: error?.message ?? String(error), stack: error?.stack ?? "" } };
}

export const tools = {
  describe() {
    return Object.entries(all).map(([name, { description, properties, readOnly = false }]) => ({
      name,
      description,
      inputSchema: JSON.stringify({ type: "object", properties, required: Object.keys(properties), additionalProperties: false }),
      annotations: { readOnly, destructive: false, idempotent: false, openWorld: false },
    }));
  },
  call(tool, input, env) {
    if (!Object.hasOwn(all, tool)) throw { tag: "unknown-tool", val: tool };
    try {
      return JSON.stringify(all[tool].run(JSON.parse(input), env));
    } catch (error) {
      throw refused(error);
    }
  },
};
