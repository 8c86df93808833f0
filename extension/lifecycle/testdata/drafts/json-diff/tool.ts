import { extension } from "stile";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Change = { path: string; kind: "added" | "removed" | "changed"; before: Json; after: Json };

function isObject(value: Json): value is { [key: string]: Json } {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function step(name: string): string {
  return name.replace(/~/g, "~0").replace(/\//g, "~1");
}

export default extension({
  tools: {
    json_diff: {
      description: "The deep difference of two JSON values: a list of path (JSON Pointer), kind (added, removed, changed), before and after. What is missing on one side is null there.",
      input: {
        type: "object",
        properties: {
          before: { description: "Any JSON value" },
          after: { description: "Any JSON value" },
          ignore: {
            type: "array",
            items: { type: "string" },
            description: "JSON Pointers of what to leave out, with all below them; * stands for any one name or index, as in /items/*/updated",
          },
        },
        required: ["before", "after"],
      },
      annotations: { readOnly: true, idempotent: true },
      run: async ({ before, after, ignore = [] }) => {
        const ignored = ignore.map((pointer) => {
          if (pointer !== "" && !pointer.startsWith("/")) throw new Error(`a path to ignore starts with "/": ${pointer}`);
          return pointer.split("/").slice(1);
        });
        const skip = (path: string[]) =>
          ignored.some((steps) => steps.length === path.length && steps.every((s, i) => s === "*" || s === path[i]));
        const changes: Change[] = [];

        const compare = (a: Json | undefined, b: Json | undefined, path: string[]): void => {
          if (skip(path)) return;
          if (a === undefined || b === undefined) {
            if (a === b) return;
            changes.push({
              path: path.map((s) => "/" + s).join(""),
              kind: a === undefined ? "added" : "removed",
              before: a ?? null,
              after: b ?? null,
            });
            return;
          }
          if (Array.isArray(a) && Array.isArray(b)) {
            for (let i = 0; i < Math.max(a.length, b.length); i++) compare(a[i], b[i], [...path, String(i)]);
            return;
          }
          if (isObject(a) && isObject(b)) {
            const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort();
            for (const key of keys) {
              compare(Object.hasOwn(a, key) ? a[key] : undefined, Object.hasOwn(b, key) ? b[key] : undefined, [...path, step(key)]);
            }
            return;
          }
          if (a !== b) changes.push({ path: path.map((s) => "/" + s).join(""), kind: "changed", before: a, after: b });
        };

        compare(before as Json, after as Json, []);
        return changes;
      },
    },
  },
});
