import { CapabilityError, extension } from "stile";

function parseCsv(text: string, delimiter: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let quoted = false;
  let i = text.charCodeAt(0) === 0xfeff ? 1 : 0;
  const endRow = () => {
    row.push(cell);
    cell = "";
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  };
  for (; i < text.length; i++) {
    const c = text.charAt(i);
    if (quoted) {
      if (c !== "\"") cell += c;
      else if (text.charAt(i + 1) === "\"") {
        cell += c;
        i++;
      } else quoted = false;
    } else if (c === "\"" && cell === "") quoted = true;
    else if (c === delimiter) {
      row.push(cell);
      cell = "";
    } else if (c === "\n") endRow();
    else if (c === "\r" && text.charAt(i + 1) === "\n") continue;
    else cell += c;
  }
  if (quoted) throw new Error("the CSV ends inside of a quoted value");
  if (cell !== "" || row.length > 0) endRow();
  return rows;
}

function escape(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/\|/g, "\\|").replace(/\r?\n/g, " ");
}

export default extension({
  tools: {
    group_sum: {
      description: "Reads a CSV file of the workspace, groups its rows by one column, sums another, and writes the result as a markdown table to another file of the workspace.",
      input: {
        type: "object",
        properties: {
          input: { type: "string", description: "Path of the CSV file, whose first row names the columns" },
          output: { type: "string", description: "Path of the markdown file to write; it is replaced" },
          group_by: { type: "string", description: "Name of the column to group by" },
          sum: { type: "string", description: "Name of the column with numbers to sum" },
          delimiter: { type: "string", minLength: 1, maxLength: 1, default: "," },
        },
        required: ["input", "output", "group_by", "sum"],
      },
      annotations: { destructive: true, idempotent: true },
      run: async ({ input, output, group_by, sum, delimiter = "," }, env) => {
        if (input === output) throw new Error("input and output are the same file");
        let text: string;
        try {
          text = await env.workspace.read(input);
        } catch (e) {
          if (e instanceof CapabilityError && e.code === "not-found") throw new Error(`there is no file ${input}`);
          throw e;
        }
        const [header, ...rows] = parseCsv(text, delimiter);
        if (!header) throw new Error(`${input} is empty`);
        const names = header.map((h) => h.trim());
        const column = (name: string) => {
          const at = names.indexOf(name);
          if (at < 0) throw new Error(`${input} has no column "${name}"; it has ${names.join(", ")}`);
          return at;
        };
        const groupAt = column(group_by);
        const sumAt = column(sum);

        const sums = new Map<string, number>();
        let decimals = 0;
        rows.forEach((row, i) => {
          const group = (row[groupAt] ?? "").trim();
          const value = (row[sumAt] ?? "").trim();
          const n = Number(value); // an empty value counts as 0
          if (!Number.isFinite(n)) throw new Error(`row ${i + 2} of ${input}: "${value}" is not a number`);
          decimals = Math.max(decimals, (/\.(\d+)$/.exec(value)?.[1] ?? "").length);
          sums.set(group, (sums.get(group) ?? 0) + n);
        });
        const places = Math.min(decimals, 10);
        const round = (n: number) => Number(n.toFixed(places));
        const groups = [...sums].map(([group, n]) => ({ group, sum: round(n) }));
        groups.sort((a, b) => (a.group < b.group ? -1 : a.group > b.group ? 1 : 0));
        const total = round([...sums.values()].reduce((a, b) => a + b, 0));

        const table = [
          `| ${escape(group_by)} | ${escape(sum)} |`,
          "| --- | ---: |",
          ...groups.map((g) => `| ${escape(g.group)} | ${g.sum.toFixed(places)} |`),
          `| **Total** | **${total.toFixed(places)}** |`,
        ].join("\n") + "\n";
        await env.workspace.write(output, table);
        return { output, rows: rows.length, groups, total, table };
      },
    },
  },
});
