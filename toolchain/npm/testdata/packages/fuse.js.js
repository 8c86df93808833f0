// package: fuse.js@7.5.0
// input: {"list": [{"title": "Old Man's War"}, {"title": "The Lock Artist"}]}
// output: ["Old Man's War"]
import { extension } from "stile";
import Fuse from "fuse.js";

export default extension({
  tools: {
    call: {
      description: "Calls fuse.js.",
      run: async (input) => {
        return new Fuse(input.list, { keys: ["title"], includeScore: true }).search("od man").map((r) => r.item.title);
      },
    },
  },
});
