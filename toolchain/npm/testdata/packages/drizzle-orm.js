// package: drizzle-orm@0.45.4
// input: {"name": "ada"}
// output: {"sql":"select \"id\", \"name\" from \"users\" where (\"users\".\"name\" = $1 and \"users\".\"id\" > 1 + 1) limit $2","params":["ada",3]}
import { extension } from "stile";
import { and, eq, gt, sql } from "drizzle-orm";
import { integer, pgTable, QueryBuilder, text } from "drizzle-orm/pg-core";

export default extension({
  tools: {
    call: {
      description: "Calls drizzle-orm.",
      run: async (input) => {
        const users = pgTable("users", { id: integer("id").primaryKey(), name: text("name") });
        return new QueryBuilder().select().from(users).where(and(eq(users.name, input.name), gt(users.id, sql`1 + 1`))).limit(3).toSQL();
      },
    },
  },
});
