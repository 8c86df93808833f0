// package: readable-stream@4.8.0
// input: {"words": ["a", "b", "c"]}
// output: ["A","B","C"]
import { extension } from "stile";
import { pipeline, Readable, Transform } from "readable-stream";

export default extension({
  tools: {
    call: {
      description: "Calls readable-stream.",
      run: async (input) => {
        const upper = new Transform({ transform: (chunk, _, done) => done(null, String(chunk).toUpperCase()) });
        const seen = [];
        upper.on("data", (chunk) => seen.push(String(chunk)));
        await new Promise((resolve, reject) => pipeline(Readable.from(input.words), upper, (error) => (error ? reject(error) : resolve(null))));
        return seen;
      },
    },
  },
});
