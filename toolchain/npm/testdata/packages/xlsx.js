// package: xlsx@0.18.5
// input: {"rows": [["a", "b"], [1, 2.5]]}
// output: [{"a":1,"b":2.5}]
import { extension } from "stile";
import * as XLSX from "xlsx";

export default extension({
  tools: {
    call: {
      description: "Calls xlsx.",
      run: async (input) => {
        const book = XLSX.utils.book_new();
        XLSX.utils.book_append_sheet(book, XLSX.utils.aoa_to_sheet(input.rows), "S");
        const bytes = XLSX.write(book, { type: "array", bookType: "xlsx" });
        const again = XLSX.read(bytes, { type: "array" });
        return XLSX.utils.sheet_to_json(again.Sheets.S);
      },
    },
  },
});
