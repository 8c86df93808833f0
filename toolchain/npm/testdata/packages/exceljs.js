// package: exceljs@4.4.0
// input: {"rows": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]}
// output: [["Id","Name"],[1,"a"],[2,"b"]]
import { extension } from "stile";
import ExcelJS from "exceljs";

export default extension({
  tools: {
    call: {
      description: "Calls exceljs.",
      run: async (input) => {
        const book = new ExcelJS.Workbook();
        const sheet = book.addWorksheet("S");
        sheet.columns = [{ header: "Id", key: "id" }, { header: "Name", key: "name" }];
        sheet.addRows(input.rows);
        const again = new ExcelJS.Workbook();
        await again.xlsx.load(await book.xlsx.writeBuffer());
        const out = [];
        again.getWorksheet("S").eachRow((row) => out.push(row.values.slice(1)));
        return out;
      },
    },
  },
});
