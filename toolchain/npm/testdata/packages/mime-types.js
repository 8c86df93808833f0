// package: mime-types@3.0.2
// input: {"name": "a.tar.gz"}
// output: ["application/gzip","text/html; charset=utf-8","json"]
import { extension } from "stile";
import mime from "mime-types";

export default extension({
  tools: {
    call: {
      description: "Calls mime-types.",
      run: async (input) => {
        return [mime.lookup(input.name), mime.contentType("text/html"), mime.extension("application/json")];
      },
    },
  },
});
