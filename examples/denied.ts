// Asks for more than its manifest does: it may read issues, and one of its tools tries to open one. The call fails with a
// denial that names the line of manifest that would allow it.
import { extension } from "stile";

const repository = {
  type: "object",
  properties: { owner: { type: "string" }, name: { type: "string" } },
  required: ["owner", "name"],
} as const;

export default extension({
  tools: {
    list_issues: {
      description: "List the open issues of a repository",
      input: repository,
      annotations: { readOnly: true, openWorld: true },
      run: async ({ owner, name }, { github }) => {
        const response = await github.fetch(`https://api.github.com/repos/${owner}/${name}/issues`);
        if (!response.ok) throw new Error(`GitHub answered ${response.status}`);
        const issues: { number: number; title: string }[] = await response.json();
        return issues.map(({ number, title }) => ({ number, title }));
      },
    },
    open_issue: {
      description: "Open an issue in a repository",
      input: {
        type: "object",
        properties: { ...repository.properties, title: { type: "string" } },
        required: ["owner", "name", "title"],
      },
      annotations: { openWorld: true },
      run: async ({ owner, name, title }, { github }) => {
        const response = await github.fetch(`https://api.github.com/repos/${owner}/${name}/issues`, {
          method: "POST",
          body: JSON.stringify({ title }),
        });
        return response.json();
      },
    },
  },
});
