// package: change-case@5.4.4
// input: {"text": "some HTTP value"}
// output: ["someHttpValue","some-http-value","SOME_HTTP_VALUE"]
import { extension } from "stile";
import { camelCase, constantCase, kebabCase } from "change-case";

export default extension({
  tools: {
    call: {
      description: "Calls change-case.",
      run: async (input) => {
        return [camelCase(input.text), kebabCase(input.text), constantCase(input.text)];
      },
    },
  },
});
