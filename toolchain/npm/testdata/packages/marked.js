// package: marked@18.2.1
// input: {"text": "# Hi *there*\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"}
// output: "<h1>Hi <em>there</em></h1>\n<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n<tbody><tr>\n<td>1</td>\n<td>2</td>\n</tr>\n</tbody></table>\n"
import { extension } from "stile";
import { marked } from "marked";

export default extension({
  tools: {
    call: {
      description: "Calls marked.",
      run: async (input) => {
        return marked.parse(input.text);
      },
    },
  },
});
