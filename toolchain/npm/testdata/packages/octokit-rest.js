// package: @octokit/rest@22.0.1
// input: {"owner": "o"}
// output: [[{"number":7,"title":"bug"}],[["GET","https://api.github.com/repos/o/r/issues?per_page=3","token x"]]]
import { extension } from "stile";
import { Octokit } from "@octokit/rest";

export default extension({
  tools: {
    call: {
      description: "Calls @octokit/rest.",
      run: async (input) => {
        const seen = [];
        const fetch = async (url, options) => {
          seen.push([options.method, String(url), options.headers.authorization]);
          return new Response(JSON.stringify([{ number: 7, title: "bug" }]), { headers: { "content-type": "application/json" } });
        };
        const { data } = await new Octokit({ auth: "x", request: { fetch } }).rest.issues.listForRepo({ owner: input.owner, repo: "r", per_page: 3 });
        return [data, seen];
      },
    },
  },
});
