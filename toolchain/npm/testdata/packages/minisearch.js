// package: minisearch@7.2.0
// input: {"documents": [{"id": 1, "text": "Zen and the art of archery"}, {"id": 2, "text": "Moby Dick"}, {"id": 3, "text": "the art of war"}]}
// output: [1,3]
import { extension } from "stile";
import MiniSearch from "minisearch";

export default extension({
  tools: {
    call: {
      description: "Calls minisearch.",
      run: async (input) => {
        const s = new MiniSearch({ fields: ["text"] });
        s.addAll(input.documents);
        return s.search("zen art", { fuzzy: 0.2 }).map((r) => r.id);
      },
    },
  },
});
