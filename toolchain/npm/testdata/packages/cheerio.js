// package: cheerio@1.2.0
// input: {"html": "<h2 class=\"title\">Hello</h2><ul><li>a<li>b</ul>"}
// output: ["<h2 class=\"title welcome\">Hello there!</h2><ul><li>a</li><li>b</li></ul>",["a","b"]]
import { extension } from "stile";
import * as cheerio from "cheerio";

export default extension({
  tools: {
    call: {
      description: "Calls cheerio.",
      run: async (input) => {
        const $ = cheerio.load(input.html);
        $("h2.title").text("Hello there!").addClass("welcome");
        return [$("body").html(), $("li").map((i, e) => $(e).text()).get()];
      },
    },
  },
});
