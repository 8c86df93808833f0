// package: csv-parse@7.0.3
// package: csv-stringify@6.9.0
// input: {"text": "a;b\n1;2\n3;4\n"}
// output: "1,2\n3,4\n"
import { extension } from "stile";
import { parse } from "csv-parse";
import { stringify } from "csv-stringify";

export default extension({
  tools: {
    call: {
      description: "Calls csv-parse-stream.",
      run: async (input) => {
        const rows = [];
        const parser = parse({ delimiter: ";", from_line: 2 });
        const ended = new Promise((resolve, reject) => parser.on("end", resolve).on("error", reject));
        parser.on("data", (row) => rows.push(row));
        parser.write(input.text);
        parser.end();
        await ended;
        return new Promise((resolve, reject) => stringify(rows, (error, text) => (error ? reject(error) : resolve(text))));
      },
    },
  },
});
