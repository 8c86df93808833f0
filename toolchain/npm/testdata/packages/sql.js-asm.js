// package: sql.js@1.16.0
// input: {"query": "select sum(a), group_concat(b) from t"}
// output: [{"columns":["sum(a)","group_concat(b)"],"values":[[3,"x,y"]]}]
import { extension } from "stile";
import initSqlJs from "sql.js/dist/sql-asm.js";

export default extension({
  tools: {
    call: {
      description: "Calls sql.js.",
      run: async (input) => {
        const SQL = await initSqlJs();
        const db = new SQL.Database();
        db.run("create table t(a, b); insert into t values (1, 'x'), (2, 'y')");
        return db.exec(input.query);
      },
    },
  },
});
