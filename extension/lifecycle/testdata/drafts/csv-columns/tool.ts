import { extension } from "stile";

function parse(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let field = "";
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') field += c;
      else if (text[i + 1] === '"') {
        field += '"';
        i++;
      } else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === ",") {
      row.push(field);
      field = "";
    } else if (c === "\n") {
      row.push(field);
      rows.push(row);
      row = [];
      field = "";
    } else if (c !== "\r") field += c;
  }
  if (field || row.length) rows.push([...row, field]);
  return rows;
}

export default extension({
  tools: {
    sum: {
      description: "Sum a column of a CSV text with a header",
      input: { type: "object", properties: { csv: { type: "string" }, column: { type: "string" } }, required: ["csv", "column"] },
      run: async ({ csv, column }) => {
        const [header, ...rows] = parse(csv);
        if (!header?.includes(column)) throw new Error(`there is no column ${column}`);
        const records = rows.map((row) => Object.fromEntries(header.map((name, i) => [name, row[i] ?? ""])));
        return { rows: records.length, sum: records.reduce((sum, r) => sum + Number(r[column]), 0), first: records[0] };
      },
    },
  },
});
