// package: sql.js@1.16.0
// input: {"query": "select 1 + 1"}
// missing: WebAssembly
import { extension } from "stile";
import initSqlJs from "sql.js";

export default extension({
  tools: {
    call: {
      description: "Calls sql.js.",
      run: async (input) => {
        const SQL = await initSqlJs();
        const db = new SQL.Database();
        db.run("create table t(a)");
        return db.exec(input.query)[0].values;
      },
    },
  },
});
