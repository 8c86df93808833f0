import { extension } from "stile";

interface Kind {
  extension: string;
  files: number;
  bytes: number;
}

export default extension({
  tools: {
    report: {
      description: "Count the files of the workspace by kind, and list their TODOs",
      input: { type: "object", properties: { save: { type: "string", description: "where to write the report as Markdown" } } },
      run: async ({ save }, env) => {
        const paths: string[] = [];
        let cursor: string | undefined;
        do {
          const page = await env.workspace.find("**/*", { cursor });
          paths.push(...page.paths);
          cursor = page.cursor;
        } while (cursor);
        const kinds = new Map<string, Kind>();
        let files = 0;
        let bytes = 0;
        for (const path of paths) {
          const stat = await env.workspace.stat(path);
          if (stat.kind !== "file") continue;
          const extension = /\.([^./]+)$/.exec(path)?.[1] ?? "";
          const kind = kinds.get(extension) ?? { extension, files: 0, bytes: 0 };
          kind.files++;
          kind.bytes += stat.size;
          kinds.set(extension, kind);
          files++;
          bytes += stat.size;
        }
        const todos: string[] = [];
        cursor = undefined;
        do {
          const page = await env.workspace.grep("TODO", { cursor });
          for (const m of page.matches) todos.push(`${m.path}:${m.line} ${m.text.trim()}`);
          cursor = page.cursor;
        } while (cursor);
        const result = { files, bytes, kinds: [...kinds.values()].sort((a, b) => b.bytes - a.bytes), todos };
        if (save) {
          const lines = result.kinds.map((k) => `| ${k.extension} | ${k.files} | ${k.bytes} |`);
          await env.workspace.write(save, ["| kind | files | bytes |", "|---|---|---|", ...lines, ""].join("\n"));
        }
        return result;
      },
    },
  },
});
