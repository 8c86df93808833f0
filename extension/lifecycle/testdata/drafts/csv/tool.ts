import { extension } from "stile";

function parse(csv: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [], cell = "", quoted = false;
  for (let i = 0; i < csv.length; i++) {
    const c = csv[i];
    if (quoted) {
      if (c === '"' && csv[i + 1] === '"') cell += csv[++i];
      else if (c === '"') quoted = false;
      else cell += c;
    } else if (c === '"') quoted = true;
    else if (c === ",") { row.push(cell); cell = ""; }
    else if (c === "\n") { row.push(cell); rows.push(row); row = []; cell = ""; }
    else if (c !== "\r") cell += c;
  }
  if (cell !== "" || row.length > 0) rows.push([...row, cell]);
  return rows;
}

export default extension({
  tools: {
    sum_by: {
      description: "Add up the numbers of one column of CSV for each value of another",
      input: {
        type: "object",
        properties: { csv: { type: "string" }, group: { type: "string" }, value: { type: "string" } },
        required: ["csv", "group", "value"],
      },
      output: {
        type: "array",
        items: { type: "object", properties: { key: { type: "string" }, sum: { type: "number" }, rows: { type: "integer" } } },
      },
      annotations: { readOnly: true },
      run: ({ csv, group, value }) => {
        const [head = [], ...rows] = parse(csv);
        const column = (name: string) => {
          const at = head.indexOf(name);
          if (at < 0) throw new Error(`there is no column ${name}; there are: ${head.join(", ")}`);
          return at;
        };
        const by = column(group), of = column(value);
        const sums = new Map<string, { key: string; sum: number; rows: number }>();
        rows.forEach((row, i) => {
          const n = Number(row[of]);
          if (row[of].trim() === "" || Number.isNaN(n)) throw new Error(`line ${i + 2}: ${row[of]} is not a number`);
          const entry = sums.get(row[by]) ?? { key: row[by], sum: 0, rows: 0 };
          entry.sum += n;
          entry.rows++;
          sums.set(row[by], entry);
        });
        return [...sums.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
      },
    },
  },
});
