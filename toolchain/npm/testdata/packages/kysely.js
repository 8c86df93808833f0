// package: kysely@0.28.19
// input: {"id": 3}
// output: ["select \"id\", upper(name) as \"n\" from \"person\" where \"id\" > $1 order by \"id\"",[3],[]]
import { extension } from "stile";
import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler, sql } from "kysely";

export default extension({
  tools: {
    call: {
      description: "Calls kysely.",
      run: async (input) => {
        const dialect = { createAdapter: () => new PostgresAdapter(), createDriver: () => new DummyDriver(), createIntrospector: (db) => new PostgresIntrospector(db), createQueryCompiler: () => new PostgresQueryCompiler() };
        const db = new Kysely({ dialect });
        const q = db.selectFrom("person").select(["id", sql`upper(name)`.as("n")]).where("id", ">", input.id).orderBy("id").compile();
        return [q.sql, q.parameters, await db.selectFrom("person").selectAll().execute()];
      },
    },
  },
});
