// package: graphql@16.15.0
// input: {"query": "{ hello(name: \"ada\") n }"}
// output: [{"data":{"hello":"hi ada","n":[1,2]}},"{\n  a {\n    b\n  }\n}"]
import { extension } from "stile";
import { buildSchema, graphql, parse, print } from "graphql";

export default extension({
  tools: {
    call: {
      description: "Calls graphql.",
      run: async (input) => {
        const schema = buildSchema("type Query { hello(name: String!): String, n: [Int] }");
        return [await graphql({ schema, source: input.query, rootValue: { hello: ({ name }) => "hi " + name, n: [1, 2] } }), print(parse("{a{b}}"))];
      },
    },
  },
});
