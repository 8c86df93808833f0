// package: path-to-regexp@9.0.0
// input: {"path": "/a/7/x/y"}
// output: [{"path":"/a/7/x/y","params":{"id":"7","rest":["x","y"]}},"/u/%C3%BC"]
import { extension } from "stile";
import { compile, match } from "path-to-regexp";

export default extension({
  tools: {
    call: {
      description: "Calls path-to-regexp.",
      run: async (input) => {
        return [match("/a/:id{/*rest}")(input.path), compile("/u/:n")({ n: "ü" })];
      },
    },
  },
});
